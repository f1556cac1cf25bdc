// One Chromium for one runtime, with a fresh profile. Each configuration gets a page, and with it a process,
// of its own.
import { readFileSync, readdirSync } from 'node:fs';

import { chromium } from '@playwright/test';

const args = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

/** Pids of the processes below `root` that render pages; none where there is no /proc. */
function rendererPids(root) {
  const children = new Map();
  let pids;
  try {
    pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);
  } catch {
    return [];
  }
  for (const pid of pids) {
    try {
      // The name in parentheses may hold spaces; the parent is the second field after it.
      const parent = Number(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, '').trim().split(' ')[1]);
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

/** Largest resident size that the process has had, in bytes. */
function peakResident(pid) {
  try {
    const kibibytes = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kibibytes ? Number(kibibytes) * 1024 : 0;
  } catch {
    return 0;
  }
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
      await page.waitForFunction('globalThis.bench !== undefined || globalThis.failure !== undefined');
      const failure = await page.evaluate('globalThis.failure');
      if (failure) {
        await context.close();
        throw new Error(failure);
      }
      return {
        messages,
        async call(method, argument) {
          const { value, error } = await page.evaluate(async ([name, options]) => {
            try {
              return { value: await globalThis.bench[name](options) };
            } catch (caught) {
              return { error: String(caught?.stack ?? caught) };
            }
          }, [method, argument]);
          if (error) throw new Error(error);
          return value;
        },
        /** Largest resident size of the page's process so far, in bytes; 0 where it cannot be known. */
        peakMemory: () => Math.max(0, ...rendererPids(root).map(peakResident)),
        close: () => context.close().catch(() => {}),  // its browser may have ended
      };
    },
    version: () => browser.version(),
    async close() {
      await browser.close().catch(() => {});
      await server.close();
    },
  };
}
