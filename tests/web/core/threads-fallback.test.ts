// Where the build with threads cannot start, one thread does the work and `info.why` says why.
import { afterEach, describe, expect, test } from 'vitest';
import { loadCore, type Core } from 'kvlens/core';
import { loadModule } from '../../../dist/load-module.js';
import { chooseVariant } from '../../../dist/variants.js';
import { randomModel, rejection } from '../../support/kvlens.js';

const undo: (() => void)[] = [];
afterEach(() => {
  for (const each of undo.splice(0).reverse()) each();
});

/** Replaces a property until the end of the test. */
function replace(target: object, name: string, value: unknown): void {
  const before = Object.getOwnPropertyDescriptor(target, name);
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
  undo.push(() => {
    if (before) Object.defineProperty(target, name, before);
    else delete (target as Record<string, unknown>)[name];
  });
}

/** What this machine is asked for: a build with threads, whatever its number of processors. */
async function expectsThreads(): Promise<boolean> {
  if (globalThis.navigator) replace(globalThis.navigator, 'hardwareConcurrency', 8);
  return (await chooseVariant({ threads: 'auto' }, 1)).threads > 1;
}

async function expectOneThread(why: RegExp): Promise<void> {
  const core: Core = await loadCore({ threads: 'auto' });
  expect(core.info.threads).toBe(1);
  expect(core.info.variant).not.toMatch(/-mt$/);
  expect(core.info.why.at(-1)).toMatch(/^one thread: /);
  expect(core.info.why.at(-1)).toMatch(why);
  const model = randomModel(core);
  const session = core.createSession(model);
  session.prefill([1, 2, 3]);
  expect(session.verify().bytesEqual).toBe(true);
  core.dispose();
}

describe('shared memory is refused', () => {
  class RefusingMemory extends WebAssembly.Memory {
    constructor(descriptor: WebAssembly.MemoryDescriptor) {
      if (descriptor.shared && descriptor.maximum! > 100) throw new RangeError('no such memory');
      super(descriptor);
    }
  }

  test('auto falls back to one thread', async () => {
    if (!(await expectsThreads())) return;
    replace(WebAssembly, 'Memory', RefusingMemory);
    await expectOneThread(/no such memory/);
  });

  test('a number of threads that was asked for is an error', async () => {
    if (!(await expectsThreads())) return;
    replace(WebAssembly, 'Memory', RefusingMemory);
    await rejection('module_load_failed', loadCore({ threads: 2 }));
  });
});

// Node's module takes its workers from `node:worker_threads`, which cannot be replaced.
describe.skipIf(typeof Worker === 'undefined')('workers of the module do not start', () => {
  const missing = 'no-such-script.mjs';

  test('they are absent', async () => {
    if (!(await expectsThreads())) return;
    replace(globalThis, 'Worker', undefined);
    await expectOneThread(/Worker/);
  });

  test('they are refused', async () => {
    if (!(await expectsThreads())) return;
    const refuse = (): never => {
      throw new DOMException('not allowed here', 'SecurityError');
    };
    replace(
      globalThis,
      'Worker',
      class extends Worker {
        constructor() {
          refuse();
          super('');
        }
      },
    );
    await expectOneThread(/not allowed here/);
  });

  test('their script cannot be loaded', async () => {
    if (!(await expectsThreads())) return;
    const Real = Worker;
    replace(
      globalThis,
      'Worker',
      class extends Real {
        constructor(_url: string | URL, options?: WorkerOptions) {
          super(new URL(missing, location.href), options);
        }
      },
    );
    await expectOneThread(/a thread could not be started/);
  });

  test('they never answer: the load fails after a while, and the workers end', async () => {
    if (!(await expectsThreads())) return;
    let ended = 0;
    class Silent extends EventTarget {
      postMessage(): void {}
      terminate(): void {
        ++ended;
      }
    }
    replace(globalThis, 'Worker', Silent);
    const choice = await chooseVariant({ threads: 3 }, 1);
    const { message } = await rejection('module_load_failed', loadModule(choice, undefined, 1));
    expect(message).toMatch(/its threads did not start within 0.001 seconds$/);
    expect(ended).toBe(2);
    expect(Worker).toBe(Silent);
  });
});

test('a service worker cannot load the module, and says so', async () => {
  replace(globalThis, 'ServiceWorkerGlobalScope', {});
  await rejection('unsupported_environment', loadCore());
});
