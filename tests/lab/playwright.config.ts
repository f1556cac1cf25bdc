// The page, built, in headless Chromium. Two hosts: one that isolates the page, and a plain one
// that has it at a path of its own and sends no headers.
import { defineConfig } from '@playwright/test';
import { isolatedUrl, plainUrl } from './hosts.js';

const server = (url: string, ...mode: string[]) => {
  const { port, pathname } = new URL(url);
  return {
    command: ['node', 'server.mjs', port, pathname, ...mode].join(' '),
    url: `${url}index.html`,
    reuseExistingServer: false,
    timeout: 300_000,
  };
};

export default defineConfig({
  testDir: '.',
  testMatch: '*.spec.ts',
  outputDir: '../../.build/lab-tests',
  // Chromium and the engine's threads share the machine.
  workers: 1,
  // Only for what hangs: on a busy machine a step of milliseconds takes seconds.
  timeout: 600_000,
  expect: { timeout: 180_000 },
  reporter: 'list',
  use: {
    baseURL: isolatedUrl,
    viewport: { width: 1280, height: 900 },
    locale: 'en-US',
    colorScheme: 'light',
    launchOptions: {
      timeout: 300_000,
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
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
  },
  webServer: [server(isolatedUrl, 'isolated'), server(plainUrl)],
});
