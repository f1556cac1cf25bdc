// Every sentence, label and formula with a number in it agrees with the engine's counters; one
// selection holds everywhere; and nothing is lost or explained in a tooltip alone.
import type { EngineModel } from 'kvlens';
import { expect, test, whole } from './lab.js';

const heads = 5 * 8;

/** Scores of decodes and replays one token at a time, as the engine counts them. */
async function tokenByToken(model: EngineModel, ids: readonly number[]) {
  const session = await model.createSession();
  const sums = { cached: 0, grid: 0, causalCached: 0, causal: 0 };
  for (const [index, id] of ids.entries()) {
    const { work } = index === 0 ? await session.prefill([id]) : await session.decode(id);
    const replay = await session.replay();
    sums.cached += work.attentionScoreValues;
    sums.causalCached += work.causalScoreValues;
    sums.grid += replay.work.attentionScoreValues;
    sums.causal += replay.work.causalScoreValues;
  }
  await session.dispose();
  return sums;
}

test('the formulas of avoided work are what the engine counts', async ({ lab, page, stories }) => {
  await lab.open();
  const ids = await lab.ids();
  const T = ids.length;
  const counted = await tokenByToken(stories, ids);
  await page.getByText('Why it grows like this').click();
  const derivation = lab.section('work').locator('.derivation');
  await expect(derivation).toContainText('(T³ − T)/3 scores per head');
  await expect(derivation).toContainText('exactly half as much: (T³ − T)/6');
  expect(counted.grid - counted.cached).toBe((heads * (T ** 3 - T)) / 3);
  expect(counted.causal - counted.causalCached).toBe((heads * (T ** 3 - T)) / 6);
  expect(counted.cached).toBe((heads * T * (T + 1)) / 2);
  expect(counted.grid).toBe((heads * T * (T + 1) * (2 * T + 1)) / 6);
  const avoided = whole(counted.grid - counted.cached);
  await expect(page.getByTestId('work-example')).toContainText(
    `at T = ${T}, one token at a time: ${whole(counted.grid)} − ${whole(counted.cached)} = ${avoided}`,
  );
  // What is said of this run is what the chart shows.
  await lab.section('work').getByLabel('scores (full grid)').check({ force: true });
  const readout = (await lab.section('work').locator('.kv-readout').textContent()) ?? '';
  const [, cached = '', replay = ''] =
    /: ([\d,]+) with the cache, ([\d,]+) by replay/.exec(readout) ?? [];
  await expect(page.getByTestId('work-run')).toContainText(
    `${cached} scores with the cache, ${replay} with replays`,
  );
});

test('a prefill is credited with nothing', async ({ lab }) => {
  await lab.open();
  await lab.button('Prefill again').click();
  await lab.rows(5);
  await expect(lab.section('work').locator('.kv-readout')).toContainText('no difference');
});

test('cache size and bytes read have their units: formula, counters and page agree', async ({
  lab,
  stories,
}) => {
  await lab.open();
  const { nLayers, nKvHeads, nHeads, headDim } = stories.config;
  const session = await stories.createSession();
  const ids = await lab.ids();
  const written = (await session.prefill(ids.slice(0, -1))).work.kvBytesWritten;
  const step = await session.decode(ids.at(-1) ?? 0);
  const size = 2 * nLayers * nKvHeads * headDim * ids.length * 4;
  expect(written + step.work.kvBytesWritten).toBe(size);
  await expect(lab.fact('cacheSize')).toHaveText(`${whole(size)} B`);
  await expect(lab.fact('kvRead')).toHaveText(`${whole(step.work.kvBytesRead)} B`);
  const group = nHeads / nKvHeads;
  expect(step.work.kvBytesRead).toBe(group * size);
  await expect(lab.section('evidence')).toContainText(`${group} heads share each byte`);
  await session.dispose();
});

test('the words about sharing of KV heads follow the configuration', async ({ lab, stories }) => {
  await lab.open();
  const { nHeads, nKvHeads } = stories.config;
  await expect(lab.section('timeline')).toContainText(
    `${nHeads / nKvHeads} query heads share each KV head: ${nKvHeads} rows per token per layer instead of ${nHeads}`,
  );
});

test('the means of the head table are means, over as many rows as they say', async ({
  lab,
  page,
  stories,
}) => {
  await lab.open();
  const ids = await lab.ids();
  const session = await stories.createSession();
  const { evidence } = await session.prefill(ids, { capture: 'attention' });
  const n = ids.length;
  const entropies = Array.from({ length: n - 1 }, (_, i) => {
    const row = evidence?.attention.data.subarray((i + 1) * n, (i + 1) * n + i + 2) ?? [];
    return [...row].reduce(
      (sum, weight) => (weight > 0 ? sum - weight * Math.log2(weight) : sum),
      0,
    );
  });
  const mean = entropies.reduce((a, b) => a + b) / entropies.length;
  const table = page.locator('.kv-head-table');
  await expect(table).toContainText(`Averaged over ${n - 1} rows.`);
  const shown = await table
    .locator('tbody tr')
    .first()
    .locator('data')
    .first()
    .getAttribute('value');
  expect(Math.abs(Number(shown) - mean)).toBeLessThan(1e-9);
  await session.dispose();
});

test('one selection everywhere: chips, bars, map, evidence; verifying goes to what is verified', async ({
  lab,
  page,
}) => {
  await lab.open();
  await lab.chips.nth(7).click();
  await expect(page.getByRole('heading', { name: 'Step 4 of 13' })).toBeVisible();
  await expect(lab.fact('position')).toHaveText('7');
  await expect(lab.bars).toHaveAttribute('aria-valuenow', '7');
  await expect(page.locator('.kv-map .kv-row')).toBeVisible();
  await expect(page.locator('.kv-map .kv-tick-active').first()).toContainText(/^7 /);
  await lab.chips.nth(2).click();
  await expect(lab.fact('phase')).toHaveText('prefill');
  await lab.button('Later step').click();
  await expect(lab.chips.nth(5)).toHaveAttribute('aria-pressed', 'true');
  await lab.button('Verify now').click();
  await expect(page.getByTestId('verification')).toContainText('Equal, bit for bit');
  await expect(lab.chips.nth(16)).toHaveAttribute('aria-pressed', 'true');
  await lab.chips.nth(3).click();
  await expect(lab.section('verify')).toContainText('Not verified yet.');
});

test('the first sentence stays true after a reset and with another model', async ({
  lab,
  page,
}) => {
  await lab.open();
  const lead = page.locator('.intro-lead');
  const sentence =
    /The first example: 17 tokens, computed by stories260K in this tab when the page opened/;
  await expect(lead).toContainText(sentence);
  await lab.button('Reset').click();
  await lab.rows(0);
  await expect(lead).toContainText(sentence);
  await lab.useToy();
  await expect(lead).toContainText(sentence);
});

test('reset and a new prefill can be undone, with every row, step and bit', async ({
  lab,
  page,
}) => {
  await lab.open();
  await lab.button('Verify now').click();
  await expect(page.getByTestId('verification')).toBeVisible();
  const ids = await lab.ids();
  for (const press of ['Reset', 'Prefill again']) {
    await lab.button(press).click();
    await lab.rows(press === 'Reset' ? 0 : 5);
    await expect(page.getByTestId('undo')).toContainText('17 rows cleared.');
    await lab.button('Undo').click();
    await lab.rows(17);
    expect(await lab.ids()).toEqual(ids);
    await expect(page.getByTestId('verification')).toContainText('Equal, bit for bit');
  }
  // The rows were computed again: the next step finds them unchanged by their hashes.
  await lab.button('Next token').click();
  await lab.rows(18);
  await expect(page.getByTestId('unchanged')).toContainText('17 old rows unchanged');
  await lab.button('Verify now').click();
  await expect(page.getByTestId('verification')).toContainText('Equal, bit for bit');
});

test('a full cache explains itself in text, and invites to nothing', async ({ lab, page }) => {
  await lab.open('./?model=toy&prompt=0+1&rows=2~0.1.2.3');
  await expect(page.getByTestId('full')).toHaveText(
    'The cache is full. Select an earlier token and rewind to it, or reset.',
  );
  await expect(lab.section('decode')).not.toContainText('Click a token to append it.');
});

test('a prompt that the cache does not hold is said to be so', async ({ lab, page }) => {
  await lab.open();
  const note = page.getByTestId('prompt-differs');
  await expect(note).toBeHidden();
  await lab.prompt('Once upon a dog');
  await expect(note).toContainText(/The cache holds only the first \d of these \d tokens/);
  await lab.prompt('Lily');
  await expect(note).toContainText('prefill again to use this prompt');
  await lab.button('Prefill again').click();
  await expect(note).toBeHidden();
});

test('copying a link shows that it worked; the link restores head, position, steps and language', async ({
  lab,
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await lab.open();
  await page.getByRole('gridcell', { name: 'Layer 3, head 6' }).click();
  await lab.chips.nth(9).click();
  const ids = await lab.ids();
  await lab.button('Copy a link to this state').click();
  await expect(lab.button('Link copied')).toBeVisible();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await page.getByLabel('Русский').check({ force: true });
  await page.goto('about:blank');
  await lab.open(link);
  expect(await lab.ids()).toEqual(ids);
  await expect(page.locator('html')).toHaveAttribute('lang', 'en');
  await expect(lab.chips.nth(9)).toHaveAttribute('aria-pressed', 'true');
  await expect(
    page.getByRole('grid', { name: 'Attention weights, layer 3, head 6' }),
  ).toBeVisible();
});

for (const [width, height] of [
  [1440, 900],
  [1024, 768],
  [390, 844],
] as const) {
  test(`opening moves next to nothing at ${width} px`, async ({ lab, page }) => {
    await page.setViewportSize({ width, height });
    await page.addInitScript(() => {
      const shifts: number[] = [];
      Object.assign(globalThis, { shifts });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries())
          shifts.push((entry as PerformanceEntry & { value: number }).value);
      }).observe({ type: 'layout-shift', buffered: true });
    });
    await lab.open();
    await lab.rows(17);
    await page.waitForTimeout(300);
    const total = await page.evaluate(() =>
      (globalThis as unknown as { shifts: number[] }).shifts.reduce((a, b) => a + b, 0),
    );
    console.log(`layout shift at ${width} px: ${total.toFixed(3)}`);
    expect(total).toBeLessThan(0.1);
  });
}

for (const width of [390, 768, 1024, 1440]) {
  test(`no holes and no sideways scrolling at ${width} px`, async ({ lab, page }) => {
    await page.setViewportSize({ width, height: 900 });
    await lab.open();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    const places = await page.evaluate(() => {
      const boxOf = (element: Element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        return { left, right, top, bottom, area: (right - left) * (bottom - top) };
      };
      const bench = document.querySelector('.bench')!;
      const { left, width: inner } = bench.getBoundingClientRect();
      return {
        bench: { area: inner * bench.scrollHeight, left },
        panels: [...document.querySelectorAll('.bench > .panel')].map(boxOf),
        columns: ['.stage', '.rail', '.stage-more', '.bench'].map((name) =>
          boxOf(document.querySelector(name)!),
        ),
      };
    });
    // The panels fill the box around them.
    const filled = places.panels.reduce((sum, { area }) => sum + area, 0);
    expect(filled / places.bench.area).toBeGreaterThan(0.97);
    // The big parts follow each other without a gap larger than the space between sections.
    const [stage, rail, more, bench] = places.columns;
    if (!stage || !rail || !more || !bench) throw new Error('a part of the page is missing');
    const gap = (above: Box, below: Box) => below.top - above.bottom;
    if (width < 1080) expect(gap(bench, stage)).toBeLessThan(64);
    expect(gap(stage, rail)).toBeLessThan(64);
    expect(gap(rail, more)).toBeLessThan(64);
  });
}

interface Box {
  readonly top: number;
  readonly bottom: number;
}
