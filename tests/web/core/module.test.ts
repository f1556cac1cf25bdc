// One module, many ways to start it, and what is left when it breaks.
import { afterEach, describe, expect, test } from 'vitest';
import { loadCore, type Core, type Variant } from 'kvlens/core';
import type { CoreKvCache } from '../../../dist/core/core-kv-cache.js';
import { instanceOf } from '../../../dist/core/core.js';
import { automaticThreads, chooseVariant } from '../../../dist/variants.js';
import { repositoryBytes } from '../../support/fixtures.js';
import { failure, randomModel, rejection, sameBytes } from '../../support/kvlens.js';

const opened: Core[] = [];
afterEach(() => {
  for (const core of opened.splice(0)) core.dispose();
});

async function open(...options: Parameters<typeof loadCore>): Promise<Core> {
  const core = await loadCore(...options);
  opened.push(core);
  return core;
}

function logitsOf(core: Core): Float32Array {
  const model = randomModel(core);
  const session = core.createSession(model);
  const { logits } = session.prefill([1, 2, 3, 4, 5]);
  session.dispose();
  model.dispose();
  return logits;
}

describe('instantiation', () => {
  test('from bytes, a compiled module, and an address', async () => {
    const variant = 'simd';
    const bytes = await repositoryBytes('dist/kvlens-simd.wasm');
    const expected = logitsOf(await open({ variant }));
    const url = new URL('../../../dist/kvlens-simd.wasm', import.meta.url);
    for (const wasm of [bytes, bytes.buffer, await WebAssembly.compile(bytes), url, url.href]) {
      expect(sameBytes(logitsOf(await open({ variant, wasm })), expected)).toBe(true);
    }
  });

  test('two cores share nothing', async () => {
    const [a, b] = [await open(), await open()];
    const model = randomModel(a);
    expect(a.memory().liveHandles).toBe(1);
    expect(b.memory()).toMatchObject({ liveHandles: 0, liveBuffers: 0 });
    model.dispose();
  });

  test('what is no module is a typed error', async () => {
    const error = await rejection(
      'module_load_failed',
      loadCore({ wasm: new Uint8Array([1, 2, 3]) }),
    );
    expect(error.message).toMatch(/^cannot load the \w+ build of the module: /);
    expect(error.cause).toBeInstanceOf(WebAssembly.CompileError);
    // A module, but not this one.
    await rejection(
      'module_load_failed',
      loadCore({ wasm: Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0) }),
    );
  });

  test('threads', async () => {
    for (const threads of [0, -1, 1.5, NaN, 65, '2']) {
      expect(
        (await rejection('invalid_argument', loadCore({ threads: threads as number }))).context
          .field,
      ).toBe('threads');
    }
    // A core is left free where there are more than two.
    expect([1, 2, 3, 4, 8, 9, 64].map(automaticThreads)).toEqual([1, 2, 2, 3, 7, 8, 8]);
    const { why, threads, variant } = await chooseVariant({ threads: 'auto' }, 1);
    expect(threads > 1).toBe(variant.endsWith('-mt'));
    expect(why.join()).toMatch(/thread/);
    expect((await chooseVariant({}, 1)).threads).toBe(1);
  });
});

describe('builds', () => {
  test.each([
    ['simd', 1],
    ['relaxed', 1],
    ['simd-mt', 2],
    ['simd-mt', 3],
    ['relaxed-mt', 2],
  ] as [Variant, number][])(
    '%s on %i threads gives the bits of every other',
    async (variant, threads) => {
      const choice = await chooseVariant({ variant, threads }, 1).catch(
        (error: unknown) => error as Error,
      );
      if (choice instanceof Error)
        return expect(choice).toMatchObject({ code: 'unsupported_environment' });
      const core = await open({ variant, threads });
      expect(core.info).toMatchObject({ variant, threads });
      expect(core.info.version).toMatch(/^\d+\.\d+\.\d+$/);
      expect(sameBytes(logitsOf(core), logitsOf(await open({ variant: 'simd' })))).toBe(true);
    },
  );
});

test('after a trap every call says so, and a fresh module works', async () => {
  const core = await open();
  const model = randomModel(core);
  const session = core.createSession(model);
  // What no call of the package can do: a layer far outside of the module's memory.
  const { raw } = session.cache as CoreKvCache<'f32'>;
  const first = failure('module_aborted', () =>
    instanceOf(core).call(() => raw.layerLen(30_000_000)),
  );
  expect(first.cause).toBeInstanceOf(WebAssembly.RuntimeError);
  for (const use of [
    () => session.prefill([1]),
    () => session.kvLen,
    () => model.parameters(),
    () => core.memory(),
    () => core.createCache(model),
    () => randomModel(core),
  ]) {
    expect(failure('module_aborted', use).cause).toBe(first.cause);
  }
  session.dispose();
  model.dispose();
  expect(logitsOf(await open())).toHaveLength(11);
});
