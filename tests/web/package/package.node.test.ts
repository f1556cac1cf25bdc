// The package as others get it: packed, linted, installed into a scratch application, built by
// Vite, run in Chromium and in Firefox. examples.node.test.ts does the same with the examples.
import { chromium } from '@playwright/test';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import puppeteer from 'puppeteer-core';
import { build, preview, type PreviewServer } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmInstall, packInto, root } from '../../support/packed.js';

const variants = ['simd', 'relaxed', 'simd-mt', 'relaxed-mt'];

let scratch: string;
let tarball: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'kvlens-consumer-'));
  tarball = packInto(scratch);
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
    const allowed = [
      'dist/',
      'docs/',
      'examples/',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      'LICENSE',
      'README.md',
      'THIRD_PARTY_NOTICES.md',
      'package.json',
      'web/lab/screenshots/first-screen.png', // which README.md shows
    ];
    const others = files.filter(
      (name) => name !== '' && !allowed.some((path) => name.startsWith(`package/${path}`)),
    );
    expect(others).toEqual([]);
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
    npmInstall(scratch, tarball);
    const page = join(scratch, 'page');
    mkdirSync(page);
    writeFileSync(
      join(page, 'index.html'),
      '<!doctype html><title>consumer</title><pre></pre><script type="module" src="main.js"></script>',
    );
    writeFileSync(
      join(page, 'main.js'),
      `import { createEngine } from 'kvlens';
import { loadCore } from 'kvlens/core';
const engine = await createEngine();
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
  });
  afterAll(() => server?.close());

  test('in Chromium: the engine starts in a worker, the core runs in the page itself', async () => {
    const executablePath = ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) =>
      existsSync(path),
    );
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
      await page.goto(address);
      const told = page.locator('pre', { hasText: 'verified' });
      await Promise.race([told.waitFor({ state: 'attached' }), page.waitForEvent('pageerror')]);
      expect(errors).toEqual([]);
      expect(JSON.parse((await told.textContent())!)).toMatchObject({
        info: { threads: 1 },
        verified: true,
      });
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
      timeout: 0,
      protocolTimeout: 0,
    });
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(0);
      await page.goto(address);
      await page.waitForFunction(() => document.querySelector('pre')!.textContent !== '');
      const told = JSON.parse(await page.$eval('pre', (element) => element.textContent ?? '')) as {
        verified: boolean;
      };
      expect(told.verified).toBe(true);
    } finally {
      await browser.close();
    }
  });
});
