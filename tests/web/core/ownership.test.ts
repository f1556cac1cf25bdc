// Handles: given back once, refused afterwards, and none left behind.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCore, type Core, type KvLensError } from 'kvlens/core';
import { instanceOf } from '../../../dist/core/core.js';
import { failure, randomModel, smallConfig } from '../../support/kvlens.js';

let core: Core;
beforeAll(async () => {
  core = await loadCore();
});
afterAll(() => core.dispose());

const nothing = { liveHandles: 0, liveBuffers: 0, liveBytes: 0 };

test('1,000 rounds of everything leave no handle and no byte', () => {
  let heapBytes = 0;
  for (let round = 0; round < 1000; ++round) {
    const model = randomModel(core, smallConfig, BigInt(round), round % 2 === 0 ? 'f32' : 'f64');
    const builder = core.modelBuilder(smallConfig);
    builder.allocate('token_embedding', 'f32');
    const cache = core.createCache(model, { compute: round % 3 === 0 ? 'f64' : 'f32' });
    const session = core.bind(model, cache);
    session.prefill([1, 2, 3], { capture: 'all' });
    session.decode(4, { capture: 'attention' });
    session.replay({ capture: 'attention', allLogits: true });
    session.beginReplay({ capture: 'all' }).advance();
    session.savepoint();
    failure('token_out_of_range', () => session.decode(99, { capture: 'all' }));
    session.begin('extend', [1], { capture: 'all' });
    if (round % 2 === 0) session.abandon();
    for (const handle of [session, cache, model, builder]) handle.dispose();
    expect(core.memory()).toMatchObject(nothing);
    if (round === 100) heapBytes = core.memory().heapBytes;
  }
  expect(core.memory().heapBytes).toBe(heapBytes);
});

test('dispose again does nothing; any other use is the error disposed', () => {
  const model = randomModel(core);
  const cache = core.createCache(model);
  const session = core.bind(model, cache);
  session.dispose();
  session.dispose();
  expect(session.disposed).toBe(true);
  for (const use of [
    () => session.prefill([1]),
    () => session.work(),
    () => session.kvLen,
    () => session.tokens(),
    () => session.reset(),
    () => session.clear(),
    () => session.savepoint(),
    () => session.begin('prefill', [1]),
    () => session.abandon(),
    () => session.lastStep,
    () => session.replay({ tokens: [1] }),
  ]) {
    expect(failure('disposed', use).context).toEqual({ name: 'Session' });
  }
  const layer = cache.layer(0);
  cache.dispose();
  expect(failure('disposed', () => cache.len).context).toEqual({ name: 'KvCache' });
  failure('disposed', () => layer.keys());
  failure('disposed', () => core.bind(model, cache));
  model.dispose();
  expect(failure('disposed', () => model.parameters()).context).toEqual({ name: 'Model' });
  failure('disposed', () => core.createCache(model));
  const builder = core.modelBuilder(smallConfig);
  builder.dispose();
  failure('disposed', () => builder.allocate('final_norm', 'f32'));
  failure('disposed', () => builder.finish());
  expect(core.memory()).toMatchObject(nothing);
});

test('a model and a cache that a session holds stay; a session that owns its cache gives it back', () => {
  const model = randomModel(core);
  const cache = core.createCache(model);
  const session = core.bind(model, cache);
  const owning = core.createSession(model);
  expect(failure('model_in_use', () => model.dispose()).context).toEqual({ count: 2 });
  expect(failure('cache_in_use', () => cache.dispose()).context).toEqual({ count: 1 });
  session.prefill([1]);
  expect(model.disposed).toBe(false);
  owning.dispose();
  expect(owning.cache.disposed).toBe(true);
  expect(failure('model_in_use', () => model.dispose()).context).toEqual({ count: 1 });
  session.dispose();
  expect(cache.len).toBe(1);
  model.dispose();
  // The cache keeps its rows; what it needs of the model it has captured.
  expect(cache.tokens()).toEqual(Uint32Array.of(1));
  cache.dispose();
  expect(core.memory()).toMatchObject(nothing);
});

test('a session can be bound again to a cache that holds rows', () => {
  const model = randomModel(core);
  const cache = core.createCache(model);
  const first = core.bind(model, cache);
  first.prefill([1, 2]);
  first.dispose();
  const second = core.bind(model, cache);
  expect(second.kvLen).toBe(2);
  expect(second.hasLogits).toBe(false);
  failure('no_logits', () => second.logits());
  failure('no_schedule', () => second.schedule());
  const step = second.decode(3);
  expect(second.verify().bytesEqual).toBe(true);
  expect(step.kvLen).toBe(3);
  for (const handle of [second, cache, model]) handle.dispose();
});

test.runIf('dispose' in Symbol)('Symbol.dispose is dispose', () => {
  const model = randomModel(core);
  model[Symbol.dispose]();
  expect(model.disposed).toBe(true);
  expect(core.memory()).toMatchObject(nothing);
});

test('a builder that has failed goes on; a finished one is disposed of', () => {
  const builder = core.modelBuilder(smallConfig);
  failure('non_finite_parameter', () =>
    builder.add({ name: 'final_norm', dtype: 'f32', data: new Float32Array(8).fill(NaN) }),
  );
  for (const { name, shape } of builder.specs) {
    builder.add({
      name,
      dtype: 'f32',
      data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(0.1),
    });
  }
  const model = builder.finish();
  expect(builder.disposed).toBe(true);
  expect(model.parameters()).toHaveLength(builder.specs.length);
  model.dispose();
  expect(core.memory()).toMatchObject(nothing);
});

test('any allocation of a call can fail: the error is typed, nothing changes, nothing is lost', () => {
  const model = randomModel(core);
  const session = core.createSession(model);
  session.prefill([1, 2, 3]);
  const before = {
    memory: core.memory(),
    hashes: session.cache.contentHashes(),
    logits: [...session.logits()],
  };
  const withFailure = (successes: number, run: () => unknown): boolean => {
    instanceOf(core).call((module) => module.failAllocationsAfter(successes));
    try {
      run();
      return true;
    } catch (error) {
      expect((error as KvLensError).code).toBe('out_of_memory');
      return false;
    } finally {
      instanceOf(core).call((module) => module.clearAllocationFailure());
    }
  };
  const calls: [string, () => unknown][] = [
    ['createSession', () => core.createSession(model).dispose()],
    ['randomModel', () => randomModel(core).dispose()],
    ['replay', () => session.replay({ capture: 'all', allLogits: true })],
    ['savepoint', () => session.savepoint().dispose()],
    ['topTokens', () => session.topTokens(3)],
    ['sample', () => session.sample({ temperature: 1, topP: 0.5 }, { state: 1n })],
  ];
  for (const [name, run] of calls) {
    let failures = 0;
    while (!withFailure(failures, run)) ++failures;
    expect(failures, name).toBeGreaterThan(0);
    expect(core.memory(), name).toEqual(before.memory);
  }
  expect(session.cache.contentHashes()).toEqual(before.hashes);
  expect([...session.logits()]).toEqual(before.logits);
  let failures = 0;
  while (!withFailure(failures, () => session.decode(4, { capture: 'all' }))) {
    expect(session.cache.contentHashes()).toEqual(before.hashes);
    expect(core.memory()).toEqual(before.memory);
    ++failures;
  }
  expect(session.verify().bytesEqual).toBe(true);
  session.dispose();
  model.dispose();
  expect(core.memory()).toMatchObject(nothing);
});
