// The package's tests: one suite, in Node and in headless Chromium, on the built package in dist/;
// and those of the figures that the Lab draws. Files named *.node.test.ts need what only Node has.
import { playwright } from '@vitest/browser-playwright';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import type { BrowserConfigOptions } from 'vitest/node';

const inRoot = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const systemChromium = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => existsSync(path));

const alias = [
  { find: /^kvlens$/, replacement: inRoot('dist/index.js') },
  { find: /^kvlens\/core$/, replacement: inRoot('dist/core.js') },
];

/** Asked for on every answer: only then may pages share memory between threads. */
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/** Headless Chromium; an object for each project, since Vitest writes into it. */
const chromium = () =>
  ({
    enabled: true,
    headless: true,
    screenshotFailures: false,
    provider: playwright({
      launchOptions: {
        timeout: 300_000,
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
      },
    }),
    connectTimeout: 300_000,
    instances: [{ browser: 'chromium' as const }],
  }) satisfies BrowserConfigOptions;

export default defineConfig({
  cacheDir: inRoot('.build/vite-web'),
  resolve: { alias },
  test: {
    // Only for what hangs: on a busy machine a test of seconds takes minutes.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    teardownTimeout: 300_000,
    expect: { poll: { timeout: 300_000 } },
    projects: [
      {
        extends: true,
        test: { name: 'node', include: ['tests/web/**/*.test.ts'], environment: 'node' },
      },
      {
        extends: true,
        server: { headers: isolation },
        worker: { format: 'es' },
        test: {
          name: 'chromium',
          include: ['tests/web/**/*.test.ts'],
          exclude: ['tests/web/**/*.node.test.ts'],
          browser: chromium(),
        },
      },
      // The figures of the Lab: their arithmetic in Node, the components (*.browser.test.tsx) in
      // Chromium.
      {
        extends: true,
        test: { name: 'figures', include: ['tests/lab/figures/*.test.ts'], environment: 'node' },
      },
      {
        extends: true,
        server: { headers: isolation },
        // Known before the first test asks for them, since finding them later reloads the page.
        optimizeDeps: {
          include: [
            '@preact/signals',
            'axe-core',
            'preact',
            'preact/hooks',
            'preact/jsx-dev-runtime',
          ],
        },
        test: {
          name: 'figures-chromium',
          include: ['tests/lab/figures/*.browser.test.tsx'],
          browser: chromium(),
        },
      },
    ],
  },
});
