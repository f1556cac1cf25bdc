// Firefox ESR, another engine with another compiler, gives the stored bits in every build.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { build, preview } from 'vite';
import { expect, test } from 'vitest';
import { builds } from '../../support/bits.js';
import { expectedBits } from '../../support/expected-bits.js';

const inRoot = (path: string): string =>
  fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const firefox = '/usr/bin/firefox-esr';
if (!existsSync(firefox))
  console.log('the Firefox run of the stored bits is skipped: there is no firefox-esr');

test.skipIf(!existsSync(firefox))('every build has the stored bits in Firefox ESR', async () => {
  const page = {
    root: inRoot('tests/web/firefox'),
    configFile: false,
    logLevel: 'error',
    resolve: { alias: [{ find: 'kvlens/core', replacement: inRoot('dist/core.js') }] },
    build: { target: 'esnext', outDir: inRoot('.build/firefox'), emptyOutDir: true },
    preview: {
      port: 0,
      host: '127.0.0.1',
      headers: {
        'Cross-Origin-Opener-Policy': 'same-origin',
        'Cross-Origin-Embedder-Policy': 'require-corp',
      },
    },
  } as const;
  await build({ ...page, resolve: { alias: [...page.resolve.alias] } });
  const server = await preview({ ...page, resolve: { alias: [...page.resolve.alias] } });
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: firefox,
    headless: true,
    timeout: 0,
    protocolTimeout: 0,
  });
  try {
    const tab = await browser.newPage();
    tab.setDefaultTimeout(0);
    await tab.goto(server.resolvedUrls!.local[0]!);
    await tab.waitForFunction(() => document.querySelector('pre')!.textContent !== '');
    const results = JSON.parse(await tab.$eval('pre', (element) => element.textContent ?? '')) as [
      string,
      unknown,
    ][];
    const { storageTypes, sampledTokens } = expectedBits;
    expect(results).toEqual(
      builds.map(({ variant, threads }) => [
        `${variant} ${threads}`,
        { storageTypes, sampledTokens },
      ]),
    );
  } finally {
    await browser.close();
    await server.close();
  }
});
