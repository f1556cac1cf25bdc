// One Chromium for one runtime, with a fresh profile. Each configuration gets a page, and with it a
// process, of its own.
import { readFileSync, readdirSync } from 'node:fs';

import { chromium } from '@playwright/test';

const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Pids of the processes below `root` that render pages; none where there is no /proc. */
function rendererPids(root) {
  const children = new Map();
  let pids;
  try {
    pids = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
  for (const pid of pids) {
    try {
      // The name in parentheses may hold spaces; the parent is the second field after it.
      const parent = Number(
        readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, '').trim().split(' ')[1],
      );
      children.set(parent, [...(children.get(parent) ?? []), pid]);
    } catch {
      // It ended meanwhile.
    }
  }
  const below = (pid) => [pid, ...(children.get(pid) ?? []).flatMap(below)];
  return below(root).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer');
    } catch {
      return false;
    }
  });
}

/** Resident size of a process in bytes: now (`VmRSS`), or the largest that it has had (`VmHWM`). */
function residentSize(pid, field) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

const residentSizes = (root) =>
  new Map(rendererPids(root).map((pid) => [pid, residentSize(pid, 'VmRSS')]));

/** The process that grew most. */
function mostGrown(before, after) {
  const growth = [...after].map(([pid, size]) => [pid, size - (before.get(pid) ?? 0)]);
  return growth.sort((a, b) => b[1] - a[1])[0]?.[0];
}

export async function openSession(origin, executablePath) {
  const server = await chromium.launchServer({ executablePath, headless: true, args });
  const browser = await chromium.connect(server.wsEndpoint());
  const root = server.process().pid;
  return {
    /** A page whose module `script` has set `globalThis.bench`; its `call`s go there. */
    async openPage(script) {
      const context = await browser.newContext();
      const page = await context.newPage();
      const messages = [];
      page.on('console', (message) => messages.push(message.text()));
      page.on('pageerror', (error) => messages.push(error.message));
      await page.goto(`${origin}/page/index.html?script=${encodeURIComponent(script)}`);
      await page.waitForFunction(
        'globalThis.bench !== undefined || globalThis.failure !== undefined',
      );
      const failure = await page.evaluate('globalThis.failure');
      if (failure) {
        await context.close();
        throw new Error(failure);
      }
      let pid;
      let peak = 0;
      return {
        messages,
        async call(method, argument) {
          const before = pid === undefined ? residentSizes(root) : undefined;
          const { value, error } = await page.evaluate(
            async ([name, options]) => {
              try {
                return { value: await globalThis.bench[name](options) };
              } catch (caught) {
                return { error: String(caught?.stack ?? caught) };
              }
            },
            [method, argument],
          );
          if (error) throw new Error(error);
          // Nothing tells which process renders a page, but the first call loads a model.
          pid ??= mostGrown(before, residentSizes(root));
          // Kernels keep this figure only roughly: it may fall.
          peak = Math.max(peak, residentSize(pid, 'VmHWM'));
          return value;
        },
        /**
         * Largest resident size of the page's process so far, in bytes; 0 where it cannot be known.
         */
        peakMemory: () => peak,
        close: () => context.close().catch(() => {}), // its browser may have ended
      };
    },
    version: () => browser.version(),
    async close() {
      await browser.close().catch(() => {});
      await server.close();
    },
  };
}
