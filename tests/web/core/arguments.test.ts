// What JavaScript can get wrong is refused with a typed error before the module sees it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Core, Model, Session, TokenIds } from 'kvlens/core';
import { failure, randomModel, sharedCore, smallConfig } from '../../support/kvlens.js';

let core: Core;
let model: Model;
let session: Session;
beforeAll(async () => {
  core = await sharedCore();
  model = randomModel(core);
  session = core.createSession(model);
  session.prefill([1, 2]);
});
afterAll(() => {
  session.dispose();
  model.dispose();
});

/** A value of the wrong type, as a caller without types would give it. */
const wrong = (value: unknown): never => value as never;

function detached(): Uint32Array {
  const ids = Uint32Array.of(1, 2);
  structuredClone(ids.buffer, { transfer: [ids.buffer] });
  return ids;
}

describe('token ids', () => {
  const bad: [string, unknown][] = [
    ['a string', '1,2'],
    ['NaN', [NaN]],
    ['-1', [0, -1]],
    ['2^32', [2 ** 32]],
    ['1.5', [1.5]],
    ['a string among them', [1, '2']],
    ['bigints', [1n]],
    ['undefined', undefined],
    ['null', null],
    ['another typed array', Float32Array.of(1)],
    ['an iterator', new Set([1])],
    ['a detached buffer', detached()],
  ];
  test.each(bad)('%s', (_, tokens) => {
    for (const run of [
      () => session.prefill(wrong(tokens)),
      () => session.extend(wrong(tokens)),
      () => session.begin('extend', wrong(tokens)),
      () => session.generate({ prompt: wrong(tokens), maxNewTokens: 1 }),
      () => session.sample({}, undefined, wrong(tokens ?? null)),
    ]) {
      expect(failure('invalid_argument', run).context.field).toMatch(/^(tokens|prompt|recent)/);
    }
    expect(session.kvLen).toBe(2);
  });

  test('the message names the element, its value and what is allowed', () => {
    const { message, context } = failure('invalid_argument', () => session.extend([3, 1.5]));
    expect(context).toEqual({
      field: 'tokens[1]',
      value: '1.5',
      allowed: 'integers from 0 to 4294967295',
    });
    expect(message).toBe('tokens[1] is 1.5; allowed: integers from 0 to 4294967295');
  });

  test('numbers and Uint32Array are the same', () => {
    const given: TokenIds[] = [[3, 4], Uint32Array.of(3, 4), Uint32Array.of(0, 3, 4).subarray(1)];
    const logits = given.map((tokens) => {
      session.truncate(2);
      return [...session.extend(tokens).logits];
    });
    expect(logits[1]).toEqual(logits[0]);
    expect(logits[2]).toEqual(logits[0]);
    session.truncate(2);
    session.extend([5]);
    session.truncate(2);
  });
});

describe('numbers', () => {
  test.each([NaN, -1, 2 ** 32, 1.5, Infinity, '1', undefined, null, 1n, {}])('%s', (value) => {
    const field = (run: () => unknown): string => failure('invalid_argument', run).context.field;
    expect(field(() => session.decode(wrong(value)))).toBe('token');
    expect(field(() => session.truncate(wrong(value)))).toBe('len');
    expect(field(() => session.topTokens(wrong(value)))).toBe('n');
    expect(field(() => session.cache.layer(wrong(value)))).toBe('layer');
    expect(field(() => session.cache.layer(0).keyRow(wrong(value), 0))).toBe('kvHead');
    expect(field(() => session.cache.layer(0).keyRow(0, wrong(value)))).toBe('position');
    expect(field(() => model.readRows('token_embedding', wrong(value), 1))).toBe('rowBegin');
    expect(field(() => session.generate({ prompt: [1], maxNewTokens: wrong(value) }))).toBe(
      'maxNewTokens',
    );
    expect(field(() => core.modelBuilder({ ...smallConfig, nLayers: wrong(value) }))).toBe(
      'config.nLayers',
    );
    if (value !== undefined) {
      expect(field(() => core.createCache(model, { capacity: wrong(value ?? '') }))).toBe(
        'capacity',
      );
      expect(field(() => core.createSession(model, { chunkRows: wrong(value ?? '') }))).toBe(
        'chunkRows',
      );
    }
  });
});

describe('options', () => {
  const field = (run: () => unknown): string => failure('invalid_argument', run).context.field;

  test('capture', () => {
    expect(field(() => session.decode(1, { capture: wrong('some') }))).toBe('capture');
    expect(field(() => session.decode(1, { capture: 'all', rows: wrong('first') }))).toBe('rows');
    expect(field(() => session.decode(1, { logits: wrong('none') }))).toBe('logits');
    expect(field(() => session.begin('extend', [1], { logits: wrong(0) }))).toBe('logits');
    expect(field(() => session.decode(1, { capture: 'all', layers: [2] }))).toBe('layers[0]');
    expect(field(() => session.decode(1, { capture: 'all', layers: [1, 0] }))).toBe('layers');
    expect(field(() => session.decode(1, { capture: 'all', layers: [] }))).toBe('layers');
    expect(field(() => session.decode(1, wrong('all')))).toBe('options');
  });

  test('sampling and random state', () => {
    expect(field(() => session.sample({ temperature: wrong('hot') }))).toBe('temperature');
    expect(field(() => session.sample({ topK: 1.5 }))).toBe('topK');
    expect(field(() => session.sample({ topP: NaN }))).toBe('topP');
    expect(field(() => session.sample({ temperature: 1 }))).toBe('rng');
    expect(field(() => session.sample({ temperature: 1 }, { state: wrong(1) }))).toBe('rng.state');
    expect(field(() => session.sample({ temperature: 1 }, { state: -1n }))).toBe('rng.state');
    expect(field(() => session.sample({ temperature: 1 }, { state: 1n << 64n }))).toBe('rng.state');
    expect(field(() => session.sample(wrong(undefined)))).toBe('sampling');
  });

  test('configuration', () => {
    expect(field(() => core.parameterSpecs(wrong(null)))).toBe('config');
    expect(field(() => core.parameterSpecs({ ...smallConfig, qkNorm: wrong(1) }))).toBe(
      'config.qkNorm',
    );
    expect(
      field(() => core.parameterSpecs({ ...smallConfig, rope: { pairing: wrong('odd') } })),
    ).toBe('config.rope.pairing');
    expect(
      field(() => core.parameterSpecs({ ...smallConfig, rope: { freqFactors: [1, NaN] } })),
    ).toBe('config.rope.freqFactors[1]');
    expect(field(() => core.parameterSpecs({ ...smallConfig, rmsNormEps: wrong('1e-5') }))).toBe(
      'config.rmsNormEps',
    );
  });

  test('parameters', () => {
    const builder = core.modelBuilder(smallConfig);
    expect(field(() => builder.allocate('final_norm', wrong('int4')))).toBe('dtype');
    expect(field(() => builder.allocate(wrong(7), 'f32'))).toBe('name');
    expect(
      field(() => builder.add({ name: 'final_norm', dtype: 'f32', data: wrong([1, 2]) })),
    ).toBe('data');
    expect(field(() => builder.add({ name: 'final_norm', dtype: 'f32', data: detached() }))).toBe(
      'data',
    );
    builder.allocate('final_norm', 'f32');
    failure('parameter_size_mismatch', () => builder.write('final_norm', 30, new Uint8Array(3)));
    failure('parameter_size_mismatch', () => builder.seal('final_norm'));
    failure('missing_parameter', () => builder.write('token_embedding', 0, new Uint8Array(3)));
    builder.dispose();
  });

  test('a parameter is written in any order, but nothing twice instead of all', () => {
    const builder = core.modelBuilder(smallConfig);
    const size = builder.allocate('final_norm', 'f32');
    const half = size / 2;
    builder.write('final_norm', 0, new Uint8Array(half));
    builder.write('final_norm', 0, new Uint8Array(half));
    const { context } = failure('parameter_size_mismatch', () => builder.seal('final_norm'));
    expect(context).toEqual({ expected: size, actual: half });
    builder.dispose();
    const inOrder = core.modelBuilder(smallConfig);
    const backwards = core.modelBuilder(smallConfig);
    for (const { name, shape } of inOrder.specs) {
      const values = Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) =>
        Math.sin(i),
      );
      const bytes = new Uint8Array(values.buffer);
      inOrder.add({ name, dtype: 'f32', data: bytes });
      backwards.allocate(name, 'f32');
      for (const [begin, end] of [
        [8, bytes.length],
        [0, 8],
      ] as const)
        backwards.write(name, begin, bytes.subarray(begin, end));
      backwards.seal(name);
    }
    const [one, other] = [inOrder.finish(), backwards.finish()];
    expect(other.hash).toBe(one.hash);
    expect(other.readRows('token_embedding', 0, 2)).toEqual(one.readRows('token_embedding', 0, 2));
    one.dispose();
    other.dispose();
  });

  test('handles of another core', async () => {
    const { loadCore } = await import('kvlens/core');
    const other = await loadCore();
    expect(field(() => other.createCache(model))).toBe('model');
    expect(field(() => core.createCache(wrong({})))).toBe('model');
    expect(field(() => core.bind(model, wrong(model)))).toBe('cache');
    other.dispose();
    failure('disposed', () => other.memory());
  });
});
