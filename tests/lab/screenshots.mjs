// Pictures of the main views into web/lab/screenshots: node tests/lab/screenshots.mjs (after npm
// run build:lab).
import { spawn } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from '@playwright/test';

const folder = fileURLToPath(new URL('../../web/lab/screenshots/', import.meta.url));
const address = 'http://127.0.0.1:4573/';
const limit = 300 * 1024;

const story =
  '?model=stories260k&prompt=Lily+and+Tom+went+to+the+park&temperature=0.8&topK=40&topP=0.95&minP=0&repetitionPenalty=1&seed=38';

// `part`: the element that is shown; the window without it. `before`: what is done first.
const views = [
  { name: 'first-screen', width: 1280, height: 860 },
  { name: 'wide-dark', width: 1920, height: 1080, colorScheme: 'dark', top: '#instrument' },
  { name: 'narrow-russian', width: 390, height: 844, locale: 'ru-RU', top: '#decode' },
  { name: 'timeline', width: 1280, height: 900, part: '#timeline' },
  { name: 'attention', width: 1280, height: 900, part: '#attention' },
  { name: 'attention-dark', width: 1280, height: 900, colorScheme: 'dark', part: '#attention' },
  { name: 'evidence-and-verify', width: 1280, height: 900, part: '.rail', before: ['Verify now'] },
  { name: 'avoided-work', width: 1280, height: 900, part: '#work', before: ['Verify now'] },
  { name: 'break-it', width: 1280, height: 900, part: '#break', before: ['Try all'] },
];

async function shoot(browser, { name, width, height, part, top, before = [], ...context }) {
  const page = await browser.newPage({
    viewport: { width, height },
    locale: 'en-US',
    colorScheme: 'light',
    ...context,
  });
  await page.goto(address + (part ? story : ''));
  await page.waitForFunction(() =>
    /computed by|вычислила/.test(document.querySelector('.intro-lead')?.textContent ?? ''),
  );
  if (part) {
    await page.getByRole('button', { name: 'Prefill', exact: true }).click();
    for (let token = 0; token < 16; ++token)
      await page.getByRole('button', { name: 'Next token', exact: true }).click();
    await page.waitForFunction(
      () => document.querySelectorAll('#timeline .chip-decode[data-position]').length === 16,
    );
  }
  for (const button of before)
    await page.getByRole('button', { name: button, exact: true }).click();
  await page.waitForTimeout(800);
  if (top)
    await page.locator(top).evaluate((element) => element.scrollIntoView({ behavior: 'instant' }));
  if (part) await page.locator(part).scrollIntoViewIfNeeded();
  await page.waitForTimeout(400);
  const path = `${folder}${name}.png`;
  const box = part && (await page.locator(part).boundingBox());
  const edge = 20;
  const clip = box && {
    x: Math.max(0, box.x - edge),
    y: Math.max(0, box.y + (await page.evaluate(() => scrollY)) - edge),
    width: Math.min(width - Math.max(0, box.x - edge), box.width + 2 * edge),
    height: box.height + 2 * edge,
  };
  await page.screenshot(clip ? { path, fullPage: true, clip } : { path });
  await page.close();
  const { size } = statSync(path);
  console.log(`${name}.png ${(size / 1024).toFixed(0)} KB`);
  if (size > limit) throw new Error(`${name}.png is larger than 300 KB`);
}

mkdirSync(folder, { recursive: true });
const server = spawn(process.execPath, [
  fileURLToPath(new URL('server.mjs', import.meta.url)),
  '4573',
  '/',
  'isolated',
]);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
  ],
});
try {
  const chosen = process.argv.slice(2);
  for (const view of views)
    if (chosen.length === 0 || chosen.includes(view.name)) await shoot(browser, view);
} finally {
  await browser.close();
  server.kill();
}
