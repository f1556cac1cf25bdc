// Work that takes long: how far it is, stopping it, layers recomputed by it, and the end of the
// worker.
import type { Page } from '@playwright/test';
import { llamaHf, writeJson, writeSafetensors } from '../support/hf-writer.js';
import { Lab, expect, test } from './lab.js';

test.slow();

/**
 * Many heads and positions, and hardly any weights: 256 heads, each weight from the same numbers
 * each time.
 */
function manyHeads(): { readonly name: string; readonly bytes: Buffer }[] {
  let state = 1;
  const { config, tensors } = llamaHf(
    {
      layers: 32,
      heads: 8,
      kvHeads: 4,
      headDim: 8,
      hidden: 64,
      intermediate: 96,
      vocab: 64,
      positions: 2048,
    },
    () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32 - 0.5) * 0.6,
  );
  return [
    { name: 'config.json', bytes: Buffer.from(writeJson(config)) },
    { name: 'model.safetensors', bytes: Buffer.from(writeSafetensors(tensors)) },
  ];
}

const ids = (n: number): number[] => Array.from({ length: n }, (_, i) => 3 + ((i * 7) % 61));

async function openManyHeads(lab: Lab, page: Page, nTokens: number): Promise<void> {
  await lab.open();
  await page
    .getByTestId('model-files')
    .setInputFiles(manyHeads().map(({ name, bytes }) => ({ name, mimeType: '', buffer: bytes })));
  await expect(page.getByTestId('model-line')).toContainText('f32');
  await lab.prompt(ids(nTokens).join(' '));
}

async function prefillManyHeads(lab: Lab, page: Page, nTokens: number): Promise<void> {
  await openManyHeads(lab, page, nTokens);
  await lab.button('Prefill').click();
  await expect(lab.chips).toHaveCount(nTokens);
}

test('a verification shows how far it is, can be stopped half-way, and changes nothing then', async ({
  lab,
  page,
}) => {
  await prefillManyHeads(lab, page, 1800);
  const unchanged = async (): Promise<void> => {
    await lab.rows(1800);
    await expect(lab.fact('length')).toHaveText('0 → 1800');
    await expect(page.getByTestId('verification')).toHaveCount(0);
  };
  await unchanged();
  const progress = page.getByTestId('progress-verify');
  await lab.button('Verify now').click();
  await expect(progress).toContainText(/Replaying 1,800 tokens… [1-9]\d?%/);
  const bar = progress.getByRole('progressbar');
  const part = (): Promise<number> =>
    bar.evaluate((element) => (element as HTMLProgressElement).position);
  const first = await part();
  expect(first).toBeGreaterThan(0);
  expect(first).toBeLessThan(1);
  await expect.poll(part).toBeGreaterThan(first);
  await progress.getByRole('button', { name: 'Stop' }).click();
  await expect(lab.section('verify')).toContainText('Stopped. Nothing changed.');
  await expect(page.getByTestId('live-region')).toHaveText('Stopped. Nothing changed.');
  await expect(progress).toBeHidden();
  await unchanged();

  // Esc stops it too.
  await lab.button('Verify now').click();
  await expect(progress).toContainText('%');
  await page.keyboard.press('Escape');
  await expect(progress).toBeHidden();
  await unchanged();

  await lab.button('Next token').click();
  await lab.rows(1801);
  await lab.button('Verify now').click();
  await expect(page.getByTestId('verification')).toContainText('Equal, bit for bit');
  await expect(page.getByTestId('verification').locator('[data-fact="difference"] dd')).toHaveText(
    '0',
  );
});

test('a prefill shows how far it is, and leaves the cache empty when it is stopped', async ({
  lab,
  page,
}) => {
  await openManyHeads(lab, page, 1800);
  await lab.button('Prefill').click();
  const progress = page.getByTestId('progress-prefill');
  await expect(progress).toContainText(/Prefill: [1-9]\d* of 1800 rows/);
  await progress.getByRole('button', { name: 'Stop' }).click();
  await expect(lab.section('prompt')).toContainText('Stopped. The cache is empty.');
  await expect(page.getByTestId('run-state')).toHaveText('0 of 2,048 rows');
});

test('a layer that gave way to the memory budget is recomputed by replay, and labelled so', async ({
  lab,
  page,
  engine,
}) => {
  await prefillManyHeads(lab, page, 250);
  const attention = lab.section('attention');
  await expect(attention).toContainText('All 250 rows were captured during the run.');

  // 362 rows take 64 MiB: 256 heads x 4 bytes x the sum of the lengths. The layer that was in view
  // least recently goes first, and at the start that is the last one.
  await page.getByLabel(/^Speed/).fill('60');
  await lab.button('Play').click();
  await expect.poll(() => lab.chips.count()).toBeGreaterThan(370);
  await lab.pause();
  const held = await lab.ids();
  await expect(attention).toContainText(`All ${held.length} rows were captured during the run.`);
  await page.getByRole('gridcell', { name: 'Layer 31, head 3' }).click();
  await expect(attention).toContainText('Older rows of this layer were dropped to save memory.');
  await lab.button('Recompute this layer').click();
  await expect(attention).toContainText(
    `${held.length - 1} of ${held.length} rows recomputed by a replay, the others captured during the run.`,
  );
  await expect(lab.button('Recompute this layer')).toBeHidden();

  const pending = page.waitForEvent('download');
  await lab.button('Save CSV: attention-layer31-head3').click();
  const text = Buffer.concat(await (await (await pending).createReadStream()).toArray()).toString(
    'utf8',
  );
  const shown = text
    .trim()
    .split('\r\n')
    .slice(1)
    .map((line) => Number(line.split(',').at(-1)));
  const model = await engine.loadModel(
    Object.fromEntries(manyHeads().map(({ name, bytes }) => [name, new Uint8Array(bytes)])),
  );
  const session = await model.createSession();
  await session.prefill(held);
  const { data } = await session.attentionMaps([31]);
  const n = held.length;
  const expected = held.flatMap((_, query) => [
    ...data.subarray((3 * n + query) * n, (3 * n + query) * n + query + 1),
  ]);
  expect(shown.map(Math.fround)).toEqual(expected);
  await session.dispose();
  await model.dispose();
});

test('a prompt too long to capture is marked as such, and one button completes every layer', async ({
  lab,
  page,
  engine,
}) => {
  const n = 300;
  await prefillManyHeads(lab, page, n);
  const attention = lab.section('attention');
  await expect(attention).toContainText('In all layers some rows were not captured.');
  await expect(attention.locator('.kv-legend')).toContainText('not captured');
  const table = page.locator('.kv-head-table');
  await expect(table).toContainText(`Averaged over the 1 row captured of ${n}.`);
  await lab.button('Recompute all layers').click();
  await expect(lab.button('Recompute all layers')).toBeHidden({ timeout: 120_000 });
  await expect(attention).not.toContainText('not captured');
  await expect(table).toContainText(`Averaged over ${n - 1} rows.`);

  const model = await engine.loadModel(
    Object.fromEntries(manyHeads().map(({ name, bytes }) => [name, new Uint8Array(bytes)])),
  );
  const session = await model.createSession();
  await session.prefill(ids(n));
  const { data } = await session.attentionMaps([0]);
  let sum = 0;
  for (let query = 1; query < n; ++query)
    for (const weight of data.subarray(query * n, query * n + query + 1))
      if (weight > 0) sum -= weight * Math.log2(weight);
  const shown = table.locator('tbody tr').first().locator('data').first();
  expect(Math.abs(Number(await shown.getAttribute('value')) - sum / (n - 1))).toBeLessThan(1e-9);
  await session.dispose();
  await model.dispose();
});

test('when the worker dies the page says so, keeps showing the run, and repeats it', async ({
  page,
}) => {
  // Not the fixture's: what kills the worker is an error of the page.
  const lab = new Lab(page);
  await lab.open();
  await lab.button('Next token').click();
  await lab.rows(18);
  const held = await lab.ids();
  const worker = page.workers().find((each) => /worker/.test(each.url()));
  await worker?.evaluate(() => {
    setTimeout(() => {
      throw new Error('killed by a test');
    });
  });
  const alert = page.locator('.panel').first().getByRole('alert');
  await expect(alert).toContainText('The engine stopped');
  expect(await lab.ids()).toEqual(held);
  for (const name of ['Next token', 'Prefill again', 'Verify now']) {
    await expect(lab.button(name)).toHaveAttribute('aria-disabled', 'true');
  }
  await lab.button('Restart the engine').click();
  await expect(alert).toBeHidden();
  await expect(lab.button('Next token')).toHaveAttribute('aria-disabled', 'false');
  await lab.rows(18);
  expect(await lab.ids()).toEqual(held);
  await lab.button('Verify now').click();
  await expect(page.getByTestId('verification')).toContainText('Equal, bit for bit');
  await lab.button('Next token').click();
  await lab.rows(19);
});
