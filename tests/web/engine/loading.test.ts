// Loading a model: from any source, with progress, aborted, and from damaged files.
import { isKvLensError } from 'kvlens';
import { expect, test } from 'vitest';
import { loadWeights } from '../../../dist/engine/worker/load-weights.js';
import { fixtureFiles } from '../../support/checkpoint-model.js';
import { useStories } from '../../support/engine.js';
import { fixtureBytes, fixtureUrl } from '../../support/fixtures.js';
import { smallGguf, writeGguf } from '../../support/gguf-writer.js';
import { rejection, sharedCore, smallConfig } from '../../support/kvlens.js';

const stories = useStories();

test('the same weights from any kind of source have the same hash', async () => {
  const bytes = await fixtureBytes('stories260k/stories260K-f32.gguf');
  for (const source of [
    bytes,
    bytes.buffer,
    new Blob([bytes]),
    new File([bytes], 'a.gguf'),
    [new File([bytes], 'a.gguf')],
  ]) {
    const other = await stories.engine.loadModel(source);
    expect(other.info.hash).toBe(stories.model.info.hash);
    await other.dispose();
  }
});

test('progress goes up to the whole, from open to ready', async () => {
  const seen: string[] = [];
  let bytes = 0;
  let total = 0;
  const other = await stories.engine.loadModel(
    await fixtureFiles('stories260k/stories260K-q8_0.gguf'),
    {
      onProgress(progress) {
        seen.push(progress.stage);
        if (progress.stage === 'load') {
          expect(progress.bytes).toBeGreaterThanOrEqual(bytes);
          bytes = progress.bytes;
          total = progress.total;
        }
      },
    },
  );
  expect(seen[0]).toBe('open');
  expect(seen.at(-1)).toBe('ready');
  expect([bytes, total]).toEqual([other.info.parameterBytes, other.info.parameterBytes]);
  await other.dispose();
});

test('an aborted load leaves nothing', async () => {
  const before = await stories.engine.memory();
  const controller = new AbortController();
  const loading = stories.engine.loadModel(await fixtureFiles('stories260k/stories260K-f32.gguf'), {
    signal: controller.signal,
    onProgress: ({ stage, bytes }) => {
      if (stage === 'load' && bytes > 200_000) controller.abort(new Error('enough'));
    },
  });
  expect((await rejection('aborted', loading)).cause).toEqual(new Error('enough'));
  await rejection(
    'aborted',
    stories.engine.loadModel(new Uint8Array(9), { signal: AbortSignal.abort() }),
  );
  expect(await stories.engine.memory()).toMatchObject({ ...before, heapBytes: expect.any(Number) });
});

test("an error of the caller's own callback ends the call", async () => {
  const loading = stories.engine.loadModel(await fixtureFiles('stories260k/stories260K-f32.gguf'), {
    onProgress() {
      throw new Error('mine');
    },
  });
  await expect(loading).rejects.toThrow('mine');
  expect(await stories.model.hash()).toBe(stories.model.info.hash);
});

test('a file that is none is refused, and the engine goes on', async () => {
  await rejection(
    'unsupported_file',
    stories.engine.loadModel(new TextEncoder().encode('hello, not a model')),
  );
  await rejection('invalid_argument', stories.engine.loadModel(null as never));
  const bytes = await fixtureBytes('stories260k/stories260K-f32.gguf');
  await rejection('truncated_file', stories.engine.loadModel(bytes.slice(0, 500_000)));
  expect(await stories.model.hash()).toBe(stories.model.info.hash);
});

test('damaged files load or are refused with a typed error, and leave nothing', async () => {
  const small = smallGguf();
  const whole = writeGguf({
    entries: [...small.entries],
    tensors: [...small.tensors.values()].map((tensor) => {
      const values = tensor.dims.reduce<number>((product, dim) => product * Number(dim), 1);
      return { ...tensor, data: new Uint8Array(new Float32Array(values).fill(0.5).buffer) };
    }),
  });
  const before = await stories.engine.memory();
  const outcomes = new Map<string, number>();
  for (let i = 0; i < 400; ++i) {
    const bytes = whole.slice();
    // Evenly over header and weights, where all ones are a NaN.
    const at = Math.floor((i * (bytes.length - 4)) / 400);
    bytes.fill(i % 2 === 0 ? 0xff : i % 251, at, at + 4);
    const outcome = await stories.engine.loadModel(bytes).then(
      async (loaded) => (await loaded.dispose(), 'loaded'),
      (error: unknown) => {
        if (!isKvLensError(error)) throw error;
        return error.code;
      },
    );
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    expect(await stories.engine.memory()).toMatchObject({
      ...before,
      heapBytes: expect.any(Number),
    });
  }
  console.log(
    `| damaged files | ${[...outcomes].map(([outcome, n]) => `${outcome}: ${n}`).join(', ')} |`,
  );
  for (const outcome of ['loaded', 'invalid_file', 'truncated_file', 'non_finite_parameter']) {
    expect(outcomes.get(outcome), outcome).toBeGreaterThan(0);
  }
  for (const outcome of outcomes.keys())
    expect(outcome).not.toMatch(/module_aborted|worker_died|internal/);
  expect(await stories.model.hash()).toBe(stories.model.info.hash);
});

test('an address is loaded; where there is a private file system, its download is kept', async () => {
  const address = fixtureUrl('stories260k/stories260K-f32.gguf');
  const plain = await stories.engine.loadModel(address);
  expect(plain.info.hash).toBe(stories.model.info.hash);
  await plain.dispose();
  const cached = new URL(`?${Date.now()}`, address);
  if (globalThis.navigator?.storage?.getDirectory === undefined) {
    await rejection('cache_unavailable', stories.engine.loadModel(cached, { cache: true }));
    return;
  }
  for (const downloads of [true, false]) {
    let most = 0;
    const other = await stories.engine.loadModel(cached, {
      cache: true,
      onProgress: ({ stage, bytes }) => {
        if (stage === 'open') most = Math.max(most, bytes);
      },
    });
    expect(most > 0).toBe(downloads);
    expect(other.info.hash).toBe(stories.model.info.hash);
    await other.dispose();
  }
});

test("a model beyond the module's memory is refused before a byte of it is read", async () => {
  const core = await sharedCore();
  const checkpoint = { totalBytes: 5e9, config: smallConfig, tensors: [] } as never;
  const { context } = await rejection(
    'model_too_large',
    loadWeights(core, checkpoint, new AbortController().signal, () => {}),
  );
  expect(context.value).toBe(5e9);
  expect(context.limit).toBeLessThan(2 ** 32);
});
