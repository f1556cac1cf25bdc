// Models from files and addresses, traces out and in, figures and tables as files, state in the
// address.
import { readFileSync } from 'node:fs';
import type { Download, Page } from '@playwright/test';
import { expect, fixture, storiesF32Path, test } from './lab.js';

// Answers made up by a test do not come through a service worker.
test.use({ serviceWorkers: 'block' });

async function downloaded(
  page: Page,
  press: () => Promise<void>,
): Promise<{ name: string; bytes: Buffer }> {
  const pending = page.waitForEvent('download');
  await press();
  const download: Download = await pending;
  const parts = await (await download.createReadStream()).toArray();
  return { name: download.suggestedFilename(), bytes: Buffer.concat(parts) };
}

test('a trace goes out and comes back in, and is viewed without its model', async ({
  lab,
  page,
}) => {
  await lab.open();
  await lab.button('Verify now').click();
  await expect(page.getByTestId('verification')).toBeVisible();
  const ids = await lab.ids();
  const scores = await lab.fact('scores').textContent();
  const { name, bytes } = await downloaded(page, () => lab.button('Trace (JSON)').click());
  expect(name).toBe('kvlens-trace.json');
  const trace = JSON.parse(bytes.toString('utf8'));
  expect(trace).toMatchObject({
    schema: 'kvlens-trace',
    version: 1,
    model: { name: 'stories260K', config: { nLayers: 5 } },
  });
  expect(trace.model.hash).toMatch(/^[0-9a-f]{16}$/);
  expect(trace.rows.map(({ id }: { id: number }) => id)).toEqual(ids);
  expect(trace.calls.at(-1).verification).toMatchObject({ bytesEqual: true, maxAbsDifference: 0 });

  await page.reload();
  await lab.ready();
  await lab.button('Reset').click();
  await lab.rows(0);
  const map = async (): Promise<string> =>
    (
      await downloaded(page, () => lab.button('Save CSV: attention-layer0-head0').click())
    ).bytes.toString('utf8');
  await page
    .getByTestId('trace-file')
    .setInputFiles({ name, mimeType: 'application/json', buffer: bytes });
  await expect(page.getByTestId('viewing')).toContainText('kvlens-trace.json');
  await lab.rows(ids.length);
  expect(await lab.ids()).toEqual(ids);
  await expect(lab.fact('scores')).toHaveText(scores ?? '');
  await expect(page.getByTestId('verification')).toContainText('Equal, bit for bit');
  await expect(lab.button('Next token')).toHaveAttribute('aria-disabled', 'true');
  expect((await map()).split('\r\n').length).toBe((17 * 18) / 2 + 2);
  const again = await downloaded(page, () => lab.button('Trace (JSON)').click());
  expect(JSON.parse(again.bytes.toString('utf8'))).toEqual(trace);
  await lab.button('Back to the live session').click();
  await lab.rows(0);
});

test('a file that is not a trace is refused in words, and nothing changes', async ({
  lab,
  page,
}) => {
  await lab.open();
  const give = (text: string) =>
    page
      .getByTestId('trace-file')
      .setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(text) });
  await give('{');
  await expect(lab.section('files').getByRole('alert')).toContainText('This file is not JSON.');
  await give('{}');
  await expect(lab.section('files').getByRole('alert')).toContainText('not a kvlens trace');
  await give('{"schema":"kvlens-trace","version":99}');
  await expect(lab.section('files').getByRole('alert')).toContainText('a different schema version');
  await give('{"schema":"kvlens-trace","version":1,"model":{}}');
  await expect(lab.section('files').getByRole('alert')).toContainText('lacks fields');
  await lab.rows(17);
});

test('figures are saved as SVG and PNG, tables as CSV', async ({ lab, page }) => {
  await lab.open();
  for (const figure of ['attention-heads', 'attention-layer0-head0', 'work-causalScores']) {
    const svg = await downloaded(page, () => lab.button(`Save SVG: ${figure}`).click());
    expect(svg.name).toBe(`${figure}.svg`);
    expect(svg.bytes.toString('utf8')).toContain('<svg');
    const png = await downloaded(page, () => lab.button(`Save PNG: ${figure}`).click());
    expect(png.bytes.subarray(1, 4).toString()).toBe('PNG');
  }
  for (const [button, lines] of [
    ['Steps (CSV)', 14],
    ['Tokens (CSV)', 18],
    ['Candidates (CSV)', 1 + 13 * 12],
    ['Work (CSV)', 14],
  ] as const) {
    const { bytes } = await downloaded(page, () => lab.button(button).click());
    expect(bytes.toString('utf8').trimEnd().split('\r\n')).toHaveLength(lines);
  }
});

test('the address holds the state of a built-in model', async ({ lab, page }) => {
  await lab.open();
  await lab.prompt('Lily went to the park');
  await lab.button('Prefill again').click();
  await expect(lab.fact('phase')).toHaveText('prefill');
  await lab.candidates.nth(1).click();
  await expect(lab.fact('how')).toContainText('picked');
  const ids = await lab.ids();
  await expect
    .poll(() => new URL(page.url()).searchParams.get('rows'))
    .toBe(`${ids.length - 1}~${ids.join('.')}`);
  await page.goto('about:blank');
  await page.goBack();
  await lab.ready();
  expect(await lab.ids()).toEqual(ids);
  await expect(page.locator('#prompt textarea')).toHaveValue('Lily went to the park');
  await lab.open('./?model=toy&prompt=0+1&rows=2~0.1.2');
  expect(await lab.ids()).toEqual([0, 1, 2]);
});

test('a model of your own, from a file', async ({ lab, page }) => {
  await lab.open();
  await page.getByTestId('model-files').setInputFiles(storiesF32Path);
  await expect(page.getByTestId('model-line')).toContainText('f32');
  await lab.rows(0);
  await lab.button('Prefill').click();
  await lab.rows(5);
});

for (const name of ['llama-gqa-untied-f32', 'mistral-sliding-bf16', 'qwen3-qknorm-f32']) {
  test(`safetensors with config.json, no tokenizer: ${name}`, async ({ lab, page }) => {
    await lab.open();
    const files = ['config.json', 'model.safetensors'].map((file) => fixture(`hf/${name}/${file}`));
    await page.getByTestId('model-files').setInputFiles(files);
    await expect(page.getByTestId('model-line')).toContainText(name.split('-').at(-1) ?? '');
    await lab.prompt('1 2 3 4 5 6 7 8');
    await lab.button('Prefill').click();
    await lab.rows(8);
    for (let rows = 9; rows < 12; ++rows) {
      await lab.button('Next token').click();
      await lab.rows(rows);
    }
    await lab.button('Verify now').click();
    await expect(page.getByTestId('verification')).toContainText('Equal, bit for bit');
  });
}

test('a model by its address, with progress and a way to cancel', async ({ lab, page }) => {
  await lab.open();
  const bytes = readFileSync(storiesF32Path);
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/some.gguf', async (route) => {
    if (route.request().method() === 'GET') await held;
    await route.fulfill({
      body: bytes,
      headers: {
        'Content-Length': String(bytes.length),
        'Cross-Origin-Resource-Policy': 'cross-origin',
      },
    });
  });
  await page.getByText('Use your own model…').click();
  await page.getByLabel('URL of a GGUF or safetensors file').fill('some.gguf');
  await lab.button('Load').click();
  await expect(page.getByText('Loading some.gguf')).toBeVisible();
  await lab.button('Cancel').click();
  await expect(page.getByText('Loading some.gguf')).toBeHidden();
  await lab.rows(17);
  release();
  await lab.button('Load').click();
  await expect(page.getByTestId('model-line')).toContainText('f32');
});

test('what cannot be loaded says why, where it was asked for, and the running model stays', async ({
  lab,
  page,
}) => {
  await lab.open();
  await page
    .getByTestId('model-files')
    .setInputFiles({ name: 'notes.gguf', mimeType: 'text/plain', buffer: Buffer.from('no model') });
  const alert = page.locator('.panel').first().getByRole('alert');
  await expect(alert).toContainText(/_file/);
  await page.route('**/huge.gguf', (route) =>
    route.fulfill({ status: 200, headers: { 'Content-Length': String(6 * 2 ** 30) }, body: '' }),
  );
  await page.getByText('Use your own model…').click();
  await page.getByLabel('URL of a GGUF or safetensors file').fill('huge.gguf');
  await lab.button('Load').click();
  await expect(alert).toContainText('This file is 6 GB');
  await expect(alert).toContainText('Nothing was downloaded.');
  await lab.rows(17);
});
