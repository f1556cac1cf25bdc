// Prints what a frame of the figures costs in headless Chromium, at 12 x 12 heads x 1,024 positions
// and while decoding stories260K:
//   node tests/lab/figures/frames.mjs [--check]
// With --check it fails when the median script time of a frame is above the 16.7 ms of 60 frames a
// second.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from '@playwright/test';
import { createServer } from 'vite';

const inRoot = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const systemChromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) =>
  existsSync(path),
);
const FRAME = 1000 / 60;

const server = await createServer({
  configFile: false,
  root: inRoot(''),
  cacheDir: inRoot('.build/vite-frames'),
  resolve: { alias: [{ find: /^kvlens$/, replacement: inRoot('dist/index.js') }] },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
  worker: { format: 'es' },
  optimizeDeps: {
    noDiscovery: true,
    include: [
      '@preact/signals',
      'preact',
      'preact/hooks',
      'preact/jsx-runtime',
      '@huggingface/jinja',
      'wasm-feature-detect',
    ],
  },
  server: {
    hmr: false,
    watch: null,
    headers: {
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Embedder-Policy': 'require-corp',
    },
  },
  logLevel: 'error',
});
await server.listen();
const browser = await chromium.launch({
  ...(systemChromium && { executablePath: systemChromium }),
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});

const quantile = (values, q) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];
const line = (name, values) =>
  [name.padEnd(10), ...[0.5, 0.95, 1].map((q) => quantile(values, q).toFixed(2).padStart(8))].join(
    '',
  );

let slow = false;
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on('pageerror', (error) => console.error(error));
  await page.goto(new URL('tests/lab/figures/frames.html', server.resolvedUrls.local[0]).href);
  await page.waitForFunction(() => window.measureFrames, null, { timeout: 60_000 });
  for (const [scene, title] of [
    ['large', '12 x 12 heads x 1,024 positions'],
    ['stories', 'decoding stories260K to 400 positions'],
  ]) {
    const frames = await page.evaluate((name) => window.measureFrames[name](), scene);
    const script = frames.append.map((ms, i) => ms + frames.render[i] + frames.draw[i]);
    console.log(`\n${title}, ${script.length} rows; milliseconds: median, 95 %, largest`);
    for (const part of ['append', 'render', 'draw']) console.log(line(part, frames[part]));
    console.log(line('script', script));
    console.log(line('interval', frames.interval));
    slow ||= quantile(script, 0.5) > FRAME;
  }
} finally {
  await browser.close();
  await server.close();
}
if (slow && process.argv.includes('--check')) {
  console.error(`a frame takes more than ${FRAME.toFixed(1)} ms`);
  process.exitCode = 1;
}
