// The built folder on hosts: headers or none, any path, no network, one thread or more; its size.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { plainUrl } from './hosts.js';
import { expect, test } from './lab.js';

const folder =
  process.env.KVLENS_LAB ?? fileURLToPath(new URL('../../.build/lab', import.meta.url));

test('with the headers the page is isolated and has threads', async ({ lab, page }) => {
  await lab.open();
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  await page.getByText('About this model').click();
  const cores = await page.evaluate(() => navigator.hardwareConcurrency);
  if (cores > 1) await expect(page.getByTestId('model-line')).not.toContainText(/\b1 thread\b/);
});

test('a plain host: one thread, and how to get more; then isolated by the service worker', async ({
  lab,
  page,
}) => {
  await lab.open(plainUrl);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
  await expect(page.getByTestId('model-line')).toContainText('1 thread');
  await page.getByText('Running on one thread. Why?').click();
  await expect(
    page.locator('.note').getByText('Cross-Origin-Embedder-Policy: require-corp'),
  ).toBeVisible();
  await lab.button('Reload with more threads').click();
  await expect.poll(() => page.evaluate(() => crossOriginIsolated).catch(() => false)).toBe(true);
  await lab.ready();
  await lab.rows(17);
});

test('it reloads without a network', async ({ lab, page, context }) => {
  await lab.open(plainUrl);
  await page.getByText('About this model').click();
  await expect(page.getByText('Ready to use offline.')).toBeVisible();
  await context.setOffline(true);
  await page.reload();
  await lab.ready();
  await lab.rows(17);
  await lab.button('Next token').click();
  await lab.rows(18);
});

test('nothing comes from elsewhere', async ({ lab, page }) => {
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol.startsWith('http') && origin !== new URL(plainUrl).origin)
      elsewhere.push(request.url());
  });
  await lab.open(plainUrl);
  await lab.button('Try all').click();
  await expect(page.locator('.outcome')).toHaveCount(8);
  expect(elsewhere).toEqual([]);
});

test('the JavaScript of the page is at most 80 KB gzip', () => {
  // The worker and the module's scripts belong to the package.
  const html = readFileSync(`${folder}/index.html`, 'utf8');
  const names = readdirSync(`${folder}/assets`).filter(
    (name) => name.endsWith('.js') && !name.startsWith('worker'),
  );
  const entry = /src="\.\/assets\/([^"]+\.js)"/.exec(html)?.[1];
  expect(names).toContain(entry);
  const bytes = names.reduce(
    (sum, name) => sum + gzipSync(readFileSync(`${folder}/assets/${name}`), { level: 9 }).length,
    0,
  );
  console.log(`JavaScript of the page: ${(bytes / 1024).toFixed(1)} KB gzip`);
  expect(bytes).toBeLessThanOrEqual(80 * 1024);
});
