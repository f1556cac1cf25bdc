// What the page shows is what the package says: counters, rows of the cache, attention, replay.
import { loadCore } from 'kvlens/core';
import type { StepInfo } from 'kvlens';
import { cellsOf, expect, test, whole } from './lab.js';

const toyConfig = {
  nLayers: 2,
  nHeads: 2,
  nKvHeads: 2,
  headDim: 2,
  dModel: 4,
  dFf: 4,
  vocabSize: 5,
  maxSeqLen: 4,
  rmsNormEps: 1e-6,
} as const;

const multiplyAdds = ({ work }: Pick<StepInfo, 'work'>): number =>
  work.multiplyAddsQkv +
  work.multiplyAddsScores +
  work.multiplyAddsMix +
  work.multiplyAddsOutput +
  work.multiplyAddsFfn +
  work.multiplyAddsLogits;

test('evidence of a prefill and a decode equals the package’s own counters', async ({
  lab,
  page,
  stories,
}) => {
  await lab.open();
  const session = await stories.createSession();
  const compare = async (step: StepInfo): Promise<void> => {
    await expect(lab.fact('phase')).toHaveText(step.phase);
    await expect(lab.fact('length')).toHaveText(`${step.kvLenBefore} → ${step.kvLen}`);
    await expect(lab.fact('position')).toHaveText(whole(step.position));
    await expect(lab.fact('appended')).toHaveText(
      `${step.rowsAppended[0]} in each of ${step.rowsAppended.length}`,
    );
    await expect(lab.fact('rowScores')).toHaveText(whole(step.rowAttentionScoreValues));
    await expect(lab.fact('scores')).toHaveText(whole(step.work.attentionScoreValues));
    await expect(lab.fact('causal')).toHaveText(whole(step.work.causalScoreValues));
    await expect(lab.fact('multiplyAdds')).toHaveText(whole(multiplyAdds(step)));
    await expect(lab.fact('kvRead')).toHaveText(`${whole(step.work.kvBytesRead)} B`);
    await expect(lab.fact('kvWritten')).toHaveText(`${whole(step.work.kvBytesWritten)} B`);
    await expect(lab.fact('time')).toHaveText(/ms$/);
    const top = await session.topTokens(6);
    const shown = async (): Promise<string[][]> =>
      (await cellsOf(page.getByTestId('top-tokens').locator('tbody tr'))).map((cells) =>
        cells.slice(1),
      );
    const four = new Intl.NumberFormat('en', {
      minimumFractionDigits: 4,
      maximumFractionDigits: 4,
      useGrouping: true,
    });
    await expect
      .poll(shown)
      .toEqual(
        top.map(({ token, logit, probability }) => [
          String(token),
          four.format(logit),
          probability < 0.001 ? '< 0.1%' : `${(100 * probability).toFixed(1)}%`,
        ]),
      );
  };
  const ids = await lab.ids();
  await lab.button('Prefill again').click();
  await lab.rows(5);
  await compare(await session.prefill(ids.slice(0, 5)));
  await lab.button('Next token').click();
  await lab.rows(6);
  await compare(await session.decode(ids[5] ?? 0));
  await session.dispose();
});

test('earlier calls can be looked at', async ({ lab, page }) => {
  await lab.open();
  await lab.button('Earlier step').click();
  await expect(page.getByRole('heading', { name: 'Step 12 of 13' })).toBeVisible();
  await expect(lab.fact('position')).toHaveText('15');
  await lab.button('Later step').click();
  await expect(page.getByRole('heading', { name: 'What the last step did' })).toBeVisible();
});

test('bars grow by exactly one row a token; old rows are unchanged by their hashes', async ({
  lab,
  page,
  stories,
}) => {
  await lab.open();
  const session = await stories.createSession();
  const ids = await lab.ids();
  await session.prefill(ids);
  await page.getByTestId('unchanged').locator('summary').click();
  for (let length = 17; length < 20; ++length) {
    const hashes = await session.cache.contentHashes();
    await expect(lab.bars).toHaveAttribute('data-rows', String(length));
    const [best] = await session.topTokens(1);
    await session.decode(best?.token ?? 0);
    await lab.button('Next token').click();
    await expect(lab.bars).toHaveAttribute('data-rows', String(length + 1));
    const mark = page.getByTestId('unchanged');
    await expect(mark).toContainText(`${length} old rows unchanged`);
    await expect
      .poll(() => cellsOf(mark.locator('tbody tr'), 'code'))
      .toEqual(hashes.map((hash) => [hash, hash]));
  }
  await session.dispose();
});

test('a selected cell shows the key and value row of the cache, exactly', async ({
  lab,
  page,
  stories,
}) => {
  await lab.open();
  const session = await stories.createSession();
  await session.prefill(await lab.ids());
  await lab.bars.focus();
  await page.keyboard.press('Home');
  for (let step = 0; step < 3; ++step) await page.keyboard.press('ArrowRight');
  for (let step = 0; step < 6; ++step) await page.keyboard.press('ArrowDown');
  await expect(lab.bars).toHaveAttribute('aria-valuetext', /layer 1, KV head 2, position 3/);
  await page.getByTestId('cell').getByText('Exact numbers').click();
  const { key, value } = await session.cache.row(1, 2, 3);
  const lines = page.getByTestId('cell-numbers').locator('tbody tr');
  await expect(lines).toHaveCount(key.length);
  const shown = async (): Promise<number[][]> =>
    (await cellsOf(lines)).map((cells) => cells.map((cell) => Math.fround(Number(cell))));
  await expect.poll(shown).toEqual([...key].map((element, i) => [element, value[i]]));
  await session.dispose();
});

test('the course figures of the toy model: 24 cached, 52 replayed, 28 avoided', async ({
  lab,
  page,
}) => {
  await lab.open();
  await lab.useToy();
  await lab.button('Prefill').click();
  await lab.rows(2);
  await expect(lab.fact('scores')).toHaveText('12');
  await lab.button('Verify now').click();
  await expect(page.getByTestId('verification')).toBeVisible();
  await lab.candidates.filter({ hasText: /^2/ }).click();
  await lab.rows(3);
  await expect(lab.fact('scores')).toHaveText('12');
  await lab.button('Verify now').click();
  const verification = page.getByTestId('verification');
  await expect(verification).toContainText('Equal, bit for bit');
  await expect(verification.locator('[data-fact="difference"] dd')).toHaveText('0');
  await expect(verification.locator('tbody tr').first().locator('td').last()).toHaveText('36');
  await lab.section('work').getByLabel('scores (full grid)').check({ force: true });
  await page.getByText('Numbers as a table').click();
  const last = lab.section('work').locator('tbody tr').last();
  await expect(last).toContainText('24');
  await expect(last).toContainText('52');
  await expect(last).toContainText('28');
  await expect(last).toContainText('measured');
});

test('the toy model’s attention is the package’s, to the last digit', async ({ lab, page }) => {
  const core = await loadCore();
  const model = core.randomModel(toyConfig, { rng: { state: 38n }, dtype: 'f64' });
  const session = core.createSession(model, { compute: 'f64' });
  const { evidence } = session.prefill([0, 1], { capture: 'attention' });

  await lab.open();
  await lab.useToy();
  await lab.button('Prefill').click();
  await lab.rows(2);
  const pending = page.waitForEvent('download');
  await lab.button('Save CSV: attention-layer0-head0').click();
  const text = await (await (await pending).createReadStream()).toArray();
  const weights = Buffer.concat(text)
    .toString('utf8')
    .trim()
    .split('\r\n')
    .slice(1)
    .map((line) => Number(line.split(',').at(-1)));
  expect(weights).toEqual([
    evidence?.attention.data[0],
    ...(evidence?.attention.data.slice(2, 4) ?? []),
  ]);
  session.dispose();
  model.dispose();
  core.dispose();
});

test('the map reads out exact weights by keyboard and pointer; Esc releases', async ({
  lab,
  page,
  stories,
}) => {
  await lab.open();
  const session = await stories.createSession();
  const { evidence } = await session.prefill(await lab.ids(), { capture: 'attention' });
  const weight = (layer: number, head: number, query: number, key: number): number =>
    evidence?.attention.data[((layer * 8 + head) * 17 + query) * 17 + key] ?? NaN;
  await page
    .getByRole('button', { name: 'Layer 2, head 5' })
    .or(page.getByRole('gridcell', { name: 'Layer 2, head 5' }))
    .first()
    .click();
  const map = page.getByRole('grid', { name: 'Attention weights, layer 2, head 5' });
  await map.focus();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowLeft');
  const live = page.getByTestId('live-region');
  const read = async (): Promise<readonly number[]> => {
    const said = (await live.textContent()) ?? '';
    return (/^(\d+) \S+ → (\d+) \S+: ([\d.e-]+)/.exec(said) ?? []).slice(1).map(Number);
  };
  const [query = NaN, key = NaN, value = NaN] = await read();
  expect(key).toBeLessThanOrEqual(query);
  expect(Math.fround(value)).toBe(weight(2, 5, query, key));
  await expect(lab.chips.nth(query)).toHaveAttribute('aria-pressed', 'true');
  const box = await map.boundingBox();
  const side = (box?.width ?? 0) / 17;
  await map.hover({ position: { x: side * 3.5, y: side * 9.5 } });
  await expect(live).toContainText(/^9 .* → 3 /);
  expect(Math.fround((await read())[2] ?? NaN)).toBe(weight(2, 5, 9, 3));
  await map.click({ position: { x: side * 3.5, y: side * 9.5 } });
  await expect(lab.chips.nth(9)).toHaveAttribute('aria-pressed', 'true');
  await page.keyboard.press('Escape');
  await expect(lab.chips.nth(16)).toHaveAttribute('aria-pressed', 'true');
  await session.dispose();
});

test('verify by replay: difference exactly 0, both counts, the cache untouched', async ({
  lab,
  page,
  stories,
}) => {
  await lab.open();
  const session = await stories.createSession();
  await session.prefill(await lab.ids());
  const { replay } = await session.verify();
  await lab.button('Verify now').click();
  const verification = page.getByTestId('verification');
  await expect(verification).toContainText('Equal, bit for bit');
  await expect(verification.locator('[data-fact="difference"] dd')).toHaveText('0');
  await expect(verification.locator('[data-fact="bytes"] dd')).toHaveText('yes');
  const replayed = verification.locator('tbody tr td:last-child');
  await expect(replayed.nth(0)).toHaveText(whole(replay.work.attentionScoreValues));
  await expect(replayed.nth(1)).toHaveText(whole(replay.work.causalScoreValues));
  await expect(replayed.nth(2)).toHaveText(whole(multiplyAdds(replay)));
  await expect(verification).toContainText('Cache untouched');
  await session.dispose();
});

test('avoided work: each call’s sums, the replay measured where it was run and computed elsewhere', async ({
  lab,
  page,
  stories,
}) => {
  await lab.open();
  const ids = await lab.ids();
  await lab.button('Verify now').click();
  await expect(page.getByTestId('verification')).toBeVisible();
  const session = await stories.createSession();
  let cached = 0;
  let replayed = 0;
  const sums: string[][] = [];
  for (let length = 5; length <= ids.length; ++length) {
    const step =
      length === 5
        ? await session.prefill(ids.slice(0, 5))
        : await session.decode(ids[length - 1] ?? 0);
    const replay = await session.replay();
    cached += step.work.attentionScoreValues;
    replayed += replay.work.attentionScoreValues;
    sums.push([
      String(length),
      whole(cached),
      whole(replayed),
      whole(replayed - cached),
      length === ids.length ? 'measured' : 'computed',
    ]);
  }
  await lab.section('work').getByLabel('scores (full grid)').check({ force: true });
  await page.getByText('Numbers as a table').click();
  const shown = async (): Promise<string[][]> =>
    (await cellsOf(lab.section('work').locator('tbody tr'), 'th, td')).map(
      ([length = '', , ...others]) => [length, ...others],
    );
  await expect.poll(shown).toEqual(sums);
  await lab.button('Measure every replay').click();
  await expect(lab.section('work').locator('tbody tr', { hasText: 'measured' })).toHaveCount(
    sums.length,
  );
  await expect(lab.section('work').locator('tbody tr').last()).toContainText(whole(replayed));
  await expect(lab.button('Measure every replay')).toHaveAttribute('aria-disabled', 'true');
  await page.getByText('Why it grows like this').click();
  await expect(lab.section('work')).toContainText('T (T + 1) (2T + 1) / 6');
  await session.dispose();
});
