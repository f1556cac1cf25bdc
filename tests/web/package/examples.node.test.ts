// The examples as a reader runs them: the package is packed, each example is installed from the
// archive, and the pages are built by Vite and opened in browsers.
import { chromium, type Page } from '@playwright/test';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import puppeteer from 'puppeteer-core';
import { build, createServer, preview } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmInstall, packInto, root } from '../../support/packed.js';

const names = ['node', 'step-by-step', 'vite', 'react'];
const model = join(root, 'tests/fixtures/stories260k/stories260K-q8_0.gguf');
const story = 'there was a little girl named Lily. She loved to play outside in the park.';

let scratch: string;
let tarball: string;
const inExample = (name: string): string => join(scratch, 'examples', name);
const manifest = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<
    'dependencies' | 'devDependencies' | 'scripts',
    Record<string, string>
  >;

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'kvlens-examples-'));
  tarball = packInto(scratch);
  cpSync(join(root, 'examples'), join(scratch, 'examples'), {
    recursive: true,
    filter: (path) => basename(path) !== 'node_modules',
  });
  for (const name of names) npmInstall(inExample(name));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test.each(names)(
  '%s takes the archive that npm pack makes, and the Vite of the checkout',
  (name) => {
    const { dependencies, devDependencies } = manifest(inExample(name));
    expect(dependencies['kvlens']).toBe(`file:../../${basename(tarball)}`);
    if (devDependencies)
      expect(devDependencies['vite']).toBe(manifest(root).devDependencies['vite']);
  },
);

test('node generates a story, and its replay gives the same bytes', () => {
  const output = execFileSync('node', ['generate.js', model], {
    cwd: inExample('node'),
    encoding: 'utf8',
  });
  expect(output).toContain(story);
  expect(output).toMatch(/attention scores: [1-9]\d* with the cache, [1-9]\d* in one replay/);
  expect(output).toContain('same bytes: true');
});

test('the model that npm start of node names is in the repository', () => {
  const path = /node generate\.js (.*)/.exec(
    manifest(join(root, 'examples/node')).scripts['start']!,
  );
  expect(join(root, 'examples/node', path![1]!)).toBe(model);
});

test('step-by-step counts the work that its comments promise', () => {
  const output = execFileSync('node', ['steps.js'], {
    cwd: inExample('step-by-step'),
    encoding: 'utf8',
  });
  expect(output).toContain('2 -> 3 rows, attention [ 2, 2, 1, 3 ]');
  for (const sum of ['cachedScoreValues: 24', 'replayScoreValues: 52', 'avoidedScoreValues: 28'])
    expect(output).toContain(sum);
  expect(output).toMatch(/^true$/m);
});

describe('a page', () => {
  const address = (urls: { local: string[] } | null): string => urls!.local[0]!;

  async function inChromium(url: string, visit: (page: Page) => Promise<void>): Promise<void> {
    const paths = ['/usr/bin/chromium', '/usr/bin/google-chrome'];
    const executablePath = paths.find((path) => existsSync(path));
    const browser = await chromium.launch({
      ...(executablePath && { executablePath }),
      args: ['--no-sandbox', '--disable-gpu'],
      timeout: 0,
    });
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(0);
      const errors: string[] = [];
      page.on('pageerror', (error) => errors.push(error.message));
      await page.goto(url);
      await visit(page);
      expect(errors).toEqual([]);
    } finally {
      await browser.close();
    }
  }

  async function built<T>(name: string, use: (url: string) => Promise<T>): Promise<T> {
    const folder = inExample(name);
    await build({ root: folder, logLevel: 'error' });
    const server = await preview({
      root: folder,
      logLevel: 'error',
      preview: { port: 0, host: '127.0.0.1' },
    });
    try {
      return await use(address(server.resolvedUrls));
    } finally {
      await server.close();
    }
  }

  async function tellsTheStory(page: Page): Promise<void> {
    // The module script has run as soon as the page has loaded; its first await has not ended.
    await page.waitForFunction(() => document.querySelector('input')!.onchange !== null);
    await page.locator('input').setInputFiles(model);
    await page.locator('output', { hasText: story }).waitFor();
  }

  test('vite, built, streams a story in Chromium', () =>
    built('vite', (url) => inChromium(url, tellsTheStory)));

  test('vite, under the development server, does the same', async () => {
    const server = await createServer({
      root: inExample('vite'),
      logLevel: 'error',
      server: { port: 0, host: '127.0.0.1' },
    });
    try {
      await server.listen();
      await inChromium(address(server.resolvedUrls), tellsTheStory);
    } finally {
      await server.close();
    }
  });

  const firefox = '/usr/bin/firefox-esr';
  test.skipIf(!existsSync(firefox))('vite, built, streams a story in Firefox ESR', () =>
    built('vite', async (url) => {
      const browser = await puppeteer.launch({
        browser: 'firefox',
        executablePath: firefox,
        headless: true,
        timeout: 0,
        protocolTimeout: 0,
      });
      try {
        const page = await browser.newPage();
        page.setDefaultTimeout(0);
        await page.goto(url);
        await page.waitForFunction(() => document.querySelector('input')!.onchange !== null);
        const input = (await page.$('input'))!;
        await (input as unknown as { uploadFile(path: string): Promise<void> }).uploadFile(model);
        await page.waitForFunction(
          (text: string) => document.querySelector('output')!.value.includes(text),
          {},
          story,
        );
      } finally {
        await browser.close();
      }
    }),
  );

  test('react tells a story, starts again for another prompt, and shows an error', () =>
    built('react', (url) =>
      inChromium(url, async (page) => {
        await page.locator('input[type=file]').setInputFiles(model);
        await page.locator('output', { hasText: `Once upon a time, ${story}` }).waitFor();
        await page.getByLabel('Prompt').fill('The dog');
        await page.locator('output', { hasText: /^The dog .{40}/ }).waitFor();
        expect(await page.locator('output').textContent()).not.toContain(story);
        await page.locator('input[type=file]').setInputFiles({
          name: 'broken.gguf',
          mimeType: 'application/octet-stream',
          buffer: Buffer.from('GGUF'),
        });
        await page.getByRole('alert').waitFor();
      }),
    ));
});
