// The package as others get it: packed, linted, installed into a scratch application, built by
// Vite, run in Chromium, in Firefox and in plain Node. The examples are those of README.md.
import { chromium } from '@playwright/test';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import puppeteer from 'puppeteer-core';
import { build, preview, type PreviewServer } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readmeExample } from '../../support/readme.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const variants = ['simd', 'relaxed', 'simd-mt', 'relaxed-mt'];
const story = 'there was a little girl named Lily. She loved to play outside in the park.';
const model = join(root, '.build/fixtures/stories260k/stories260K-q8_0.gguf');

let scratch: string;
let tarball: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'kvlens-consumer-'));
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch], {
      cwd: root,
      encoding: 'utf8',
    }),
  ) as { filename: string }[];
  tarball = join(scratch, packed!.filename);
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('the tarball', () => {
  test('publint finds nothing to say', () => {
    execFileSync('tar', ['xzf', tarball, '-C', scratch]);
    const output = execFileSync(
      join(root, 'node_modules/.bin/publint'),
      [join(scratch, 'package'), '--strict', '--pack', 'false'],
      { encoding: 'utf8' },
    );
    expect(output).toMatch(/All good!/);
  });

  test('arethetypeswrong finds nothing wrong', () => {
    execFileSync(join(root, 'node_modules/.bin/attw'), [tarball, '--profile', 'esm-only'], {
      stdio: 'pipe',
    });
  });

  test('holds the declarations, all builds of the module, and no source map without its source', () => {
    const files = execFileSync('tar', ['tzf', tarball], { encoding: 'utf8' }).split('\n');
    for (const name of ['index', 'core', 'worker']) {
      expect(files).toContain(`package/dist/${name}.js`);
      expect(files).toContain(`package/dist/${name}.d.ts`);
    }
    for (const variant of variants) {
      expect(files).toContain(`package/dist/kvlens-${variant}.mjs`);
      expect(files).toContain(`package/dist/kvlens-${variant}.wasm`);
    }
    expect(
      files.filter(
        (name) =>
          !/^package\/(dist\/|package\.json|README\.md|LICENSE|$)/.test(name) && name !== '',
      ),
    ).toEqual([]);
  });

  test('each build of the module is at most 200 KB, compressed', () => {
    const sizes = variants.map((variant) => {
      const size = (extension: string): number =>
        gzipSync(readFileSync(join(root, `dist/kvlens-${variant}.${extension}`)), { level: 9 })
          .length;
      return [variant, size('wasm') + size('mjs')] as const;
    });
    console.log(
      `| .wasm + .mjs, gzip | ${sizes.map(([variant, size]) => `${variant} ${(size / 1024).toFixed(1)} KB`).join(' | ')} |`,
    );
    for (const [variant, size] of sizes) expect(size, variant).toBeLessThanOrEqual(200 * 1024);
  });

  test('its declarations of the module have no any', () => {
    expect(readFileSync(join(root, 'dist/kvlens-simd.d.ts'), 'utf8')).not.toMatch(/\bany\b/);
  });
});

describe('a scratch application', () => {
  let server: PreviewServer;
  let address: string;

  beforeAll(async () => {
    writeFileSync(
      join(scratch, 'package.json'),
      JSON.stringify({ name: 'consumer', private: true, type: 'module' }),
    );
    execFileSync(
      'npm',
      ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-save', tarball],
      { cwd: scratch, stdio: 'pipe' },
    );
    copyFileSync(model, join(scratch, 'stories260K.gguf'));
    const page = join(scratch, 'page');
    mkdirSync(page);
    writeFileSync(
      join(page, 'index.html'),
      '<!doctype html><title>consumer</title><input type="file"><output></output><pre></pre><script type="module" src="main.js"></script>',
    );
    writeFileSync(
      join(page, 'main.js'),
      `${readmeExample('browser')}
// Beside the example: a prefill and a decode in the page's own thread.
import { loadCore } from 'kvlens/core';
const core = await loadCore();
const toy = core.randomModel({ nLayers: 1, nHeads: 1, nKvHeads: 1, headDim: 2, dModel: 2, dFf: 2, vocabSize: 3, maxSeqLen: 4 }, { rng: { state: 1n } });
const steps = core.createSession(toy);
steps.prefill([0, 1]);
steps.decode(2);
document.querySelector('pre').textContent = JSON.stringify({ info: engine.info, verified: steps.verify().bytesEqual });
`,
    );
    // Vite as it comes, without a single option that kvlens would need.
    await build({ root: page, logLevel: 'error', configFile: false, build: { target: 'esnext' } });
    server = await preview({
      root: page,
      logLevel: 'error',
      configFile: false,
      preview: { port: 0, host: '127.0.0.1' },
    });
    address = server.resolvedUrls!.local[0]!;
  }, 180_000);
  afterAll(() => server?.close());

  test('in Chromium: the example of README.md, a prefill and a decode', async () => {
    const executablePath = ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) =>
      existsSync(path),
    );
    const browser = await chromium.launch({
      ...(executablePath && { executablePath }),
      args: ['--no-sandbox', '--disable-gpu'],
    });
    try {
      const page = await browser.newPage();
      const errors: string[] = [];
      page.on('pageerror', (error) => errors.push(error.message));
      await page.goto(address);
      const told = page.locator('pre', { hasText: 'verified' });
      await told.waitFor({ state: 'attached', timeout: 30_000 }).catch(() => {});
      expect(errors).toEqual([]);
      expect(JSON.parse((await told.textContent())!)).toMatchObject({
        info: { threads: 1 },
        verified: true,
      });
      await page.locator('input').setInputFiles(model);
      await page.locator('output', { hasText: story }).waitFor({ timeout: 30_000 });
      expect(errors).toEqual([]);
    } finally {
      await browser.close();
    }
  });

  const firefox = '/usr/bin/firefox-esr';
  if (!existsSync(firefox))
    console.log('the Firefox smoke run is skipped: there is no firefox-esr');
  test.skipIf(!existsSync(firefox))('in Firefox ESR: the same', async () => {
    const browser = await puppeteer.launch({
      browser: 'firefox',
      executablePath: firefox,
      headless: true,
    });
    try {
      const page = await browser.newPage();
      await page.goto(address);
      await page.waitForFunction(() => document.querySelector('pre')!.textContent !== '', {
        timeout: 30_000,
      });
      const told = JSON.parse(await page.$eval('pre', (element) => element.textContent ?? '')) as {
        verified: boolean;
      };
      expect(told.verified).toBe(true);
      const input = (await page.$('input'))!;
      await (input as unknown as { uploadFile(path: string): Promise<void> }).uploadFile(model);
      await page.waitForFunction(
        (text: string) => document.querySelector('output')!.value.includes(text),
        { timeout: 30_000 },
        story,
      );
    } finally {
      await browser.close();
    }
  });

  test.each([
    ['node', story],
    ['core', 'avoidedScoreValues: 28'],
  ])('in plain Node: the example "%s" of README.md', (name, expected) => {
    const code = readmeExample(name);
    expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(16);
    writeFileSync(join(scratch, `${name}.mjs`), code);
    const output = execFileSync('node', [`${name}.mjs`], {
      cwd: scratch,
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(output).toContain(expected);
    expect(output).toMatch(/same bytes: true|^true$/m);
  });
});
