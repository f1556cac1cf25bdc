// Every code: the union is the core's table, and each code that the package can meet is met.
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  KvLensError,
  loadCore,
  STAGES,
  WORK_COUNTERS,
  type Config,
  type Core,
  type CoreErrorCode,
  type ErrorContexts,
  type Work,
} from 'kvlens/core';
import { instanceOf } from '../../../dist/core/core.js';
import { failure, filledModel, randomModel, smallConfig } from '../../support/kvlens.js';

let core: Core;
beforeAll(async () => {
  core = await loadCore();
});
afterAll(() => {
  expect(core.memory()).toMatchObject({ liveHandles: 0, liveBuffers: 0, liveBytes: 0 });
});

const nothing = new Uint8Array(0);

function onSession(run: (session: ReturnType<Core['createSession']>) => unknown): void {
  const model = randomModel(core);
  const session = core.createSession(model, { capacity: 4 });
  try {
    run(session);
  } finally {
    session.dispose();
    model.dispose();
  }
}

function onBuilder(run: (builder: ReturnType<Core['modelBuilder']>) => unknown): void {
  const builder = core.modelBuilder(smallConfig);
  try {
    run(builder);
  } finally {
    builder.dispose();
  }
}

function workOf(scores: number): Work {
  return {
    ...Object.fromEntries(WORK_COUNTERS.map((name) => [name, 0])),
    attentionScoreValues: scores,
    qkvProjectionRows: 6,
  } as unknown as Work;
}

function contrastOf(cached: number, replay: number): unknown {
  return core.contrast(
    completeConfig(),
    { prefixLengths: [1], work: workOf(cached) },
    { prefixLengths: [1], work: workOf(replay) },
  );
}

function completeConfig(): Config {
  const model = randomModel(core);
  const { config } = model;
  model.dispose();
  return config;
}

/** A way to each code, and what its context must be. */
const ways = {
  invalid_config: [
    () => core.modelBuilder({ ...smallConfig, nHeads: 3, nKvHeads: 2 }),
    expect.objectContaining({ field: expect.any(String) }),
  ],
  missing_parameter: [() => onBuilder((builder) => builder.finish()), { name: 'token_embedding' }],
  unknown_parameter: [() => onBuilder((builder) => builder.allocate('x', 'f32')), { name: 'x' }],
  duplicate_parameter: [
    () =>
      onBuilder((builder) => {
        builder.allocate('final_norm', 'f32');
        builder.allocate('final_norm', 'f32');
      }),
    { name: 'final_norm' },
  ],
  parameter_shape_mismatch: [
    () =>
      onBuilder((builder) =>
        builder.add({
          name: 'layers.0.gate_proj',
          dtype: 'f32',
          data: new Float32Array(96),
          shape: [8, 12],
        }),
      ),
    { name: 'layers.0.gate_proj', expected: [12, 8], actual: [8, 12] },
  ],
  parameter_size_mismatch: [
    () => onBuilder((builder) => builder.add({ name: 'final_norm', dtype: 'f32', data: nothing })),
    { expected: 32, actual: 0 },
  ],
  unsupported_dtype: [
    () => onBuilder((builder) => builder.allocate('final_norm', 'q8_0')),
    expect.anything(),
  ],
  non_finite_parameter: [
    () =>
      onBuilder((builder) =>
        builder.add({
          name: 'final_norm',
          dtype: 'f32',
          data: Float32Array.of(1, 1, 1, Infinity, 1, 1, 1, 1),
        }),
      ),
    { tensor: 'final_norm', index: 3, value: expect.any(Number) },
  ],
  parameter_borrowed: [
    () =>
      onSession((session) =>
        session.model.updateParameter({
          name: 'final_norm',
          dtype: 'f32',
          data: new Float32Array(8),
        }),
      ),
    { count: 1 },
  ],
  out_of_memory: [
    () =>
      onSession((session) => {
        instanceOf(core).call((module) => module.failAllocationsAfter(0));
        try {
          core.createCache(session.model);
        } finally {
          instanceOf(core).call((module) => module.clearAllocationFailure());
        }
      }),
    expect.objectContaining({ bytes: expect.any(Number) }),
  ],
  size_overflow: [
    () => {
      const model = randomModel(core, { ...smallConfig, maxSeqLen: 2 ** 31 - 1 });
      try {
        core.createCache(model);
      } finally {
        model.dispose();
      }
    },
    {},
  ],
  non_finite_value: [
    () => {
      // Finite weights whose product is not.
      const model = filledModel(core, smallConfig, (name) => (name.endsWith('_proj') ? 1e30 : 1));
      const session = core.createSession(model);
      try {
        session.prefill([0]);
      } finally {
        session.dispose();
        model.dispose();
      }
    },
    expect.objectContaining({ tensor: expect.any(String), index: expect.any(Number) }),
  ],
  zero_capacity: [
    () => onSession((session) => core.createCache(session.model, { capacity: 0 })),
    {},
  ],
  capacity_exceeds_max_seq_len: [
    () => onSession((session) => core.createCache(session.model, { capacity: 17 })),
    { value: 17, limit: 16 },
  ],
  cache_full: [
    () =>
      onSession((session) => {
        session.prefill([0, 1, 2, 3]);
        session.decode(4);
      }),
    { value: 5, limit: 4 },
  ],
  invalid_length: [
    () =>
      onSession((session) => {
        session.prefill([0, 1]);
        session.truncate(3);
      }),
    expect.objectContaining({ value: 3 }),
  ],
  config_mismatch: [
    () =>
      onSession((session) => {
        const other = randomModel(core, { ...smallConfig, dFf: 16 });
        const cache = core.createCache(other);
        try {
          core.bind(session.model, cache);
        } finally {
          cache.dispose();
          other.dispose();
        }
      }),
    expect.objectContaining({ field: expect.stringContaining('d_ff') }),
  ],
  parameter_identity_mismatch: [
    () =>
      onSession((session) => {
        const twin = randomModel(core);
        const cache = core.createCache(twin);
        try {
          core.bind(session.model, cache);
        } finally {
          cache.dispose();
          twin.dispose();
        }
      }),
    { index: 0, name: 'token_embedding' },
  ],
  parameter_revision_mismatch: [
    () => {
      const model = randomModel(core);
      const cache = core.createCache(model);
      try {
        model.updateParameter({
          name: 'final_norm',
          dtype: 'f32',
          data: new Float32Array(8).fill(2),
        });
        core.bind(model, cache);
      } finally {
        cache.dispose();
        model.dispose();
      }
    },
    expect.objectContaining({ name: 'final_norm', captured: 0, current: 1 }),
  ],
  empty_prompt: [() => onSession((session) => session.prefill([])), {}],
  prompt_exceeds_capacity: [
    () => onSession((session) => session.prefill([0, 1, 2, 3, 4])),
    { value: 5, limit: 4 },
  ],
  token_out_of_range: [
    () => onSession((session) => session.prefill([0, 11])),
    { position: 1, id: 11, vocabSize: 11 },
  ],
  not_empty: [
    () =>
      onSession((session) => {
        session.prefill([0, 1]);
        session.prefill([0]);
      }),
    { count: 2 },
  ],
  not_prefilled: [() => onSession((session) => session.decode(0)), {}],
  call_in_progress: [
    () =>
      onSession((session) => {
        session.begin('prefill', [0, 1]);
        session.prefill([0]);
      }),
    {},
  ],
  no_call_in_progress: [() => onSession((session) => session.advance()), {}],
  savepoint_ended: [
    () =>
      onSession((session) => {
        const first = session.savepoint();
        const second = session.savepoint();
        session.rollback(first);
        session.rollback(second);
      }),
    {},
  ],
  count_mismatch: [() => contrastOf(4, 5), expect.objectContaining({ field: expect.any(String) })],
  cached_exceeds_replay: [() => contrastOf(5, 4), { value: 5, limit: 4 }],
  invalid_sampling: [
    () =>
      onSession((session) => {
        session.prefill([0]);
        session.sample({ temperature: 1, topP: 2 }, { state: 1n });
      }),
    expect.objectContaining({ field: 'top_p' }),
  ],
  invalid_argument: [
    () => onSession((session) => session.cache.layer(2)),
    { field: 'layer', value: '2', allowed: 'integers from 0 to 1' },
  ],
} satisfies { [C in CoreErrorCode]?: [run: () => unknown, context: ErrorContexts[C]] };

/**
 * Why no call of the package leads to the other codes; the core's own tests reach each of them.
 * This compiles only while every code is in one of the two lists.
 */
export const notReached = {
  work_overflow: 'takes 2^64 of something counted',
  zero_batch: 'caches of the package have one lane',
  cache_changed: 'rows are prepared and committed in one call',
  rank_mismatch: 'the attention entry is not exported',
  not_a_single_token: 'the attention entry is not exported',
  batch_mismatch: 'the attention entry is not exported',
  width_mismatch: 'the attention entry is not exported',
  shape_mismatch: 'rows come from the forward pass',
  parameter_count_mismatch: 'equal configurations have as many parameters',
  layer_count_mismatch: 'caches are made whole',
  incoherent_lengths: 'caches are made whole',
  layer_batch_mismatch: 'caches are made whole',
  layer_capacity_mismatch: 'caches are made whole',
  layer_geometry_mismatch: 'caches are made whole',
  layer_rope_mismatch: 'caches are made whole',
  interrupted: 'only a tap of the core can stop a call so',
} satisfies Record<Exclude<CoreErrorCode, keyof typeof ways>, string>;

test.each(Object.keys(ways) as (keyof typeof ways)[])('%s', (code) => {
  const [run, context] = ways[code];
  const error = failure(code, run);
  expect(error).toBeInstanceOf(KvLensError);
  expect(error.context).toEqual(context);
  expect(error.message).not.toMatch(/\n|\.$/);
});

test('a failed call leaves rows, tokens, counters, logits and hashes as they were', () => {
  onSession((session) => {
    session.prefill([1, 2, 3]);
    const before = {
      hashes: session.cache.contentHashes(),
      tokens: [...session.tokens()],
      work: session.work(),
      logits: [...session.logits()],
      step: session.lastStep,
    };
    const now = (): typeof before => ({
      hashes: session.cache.contentHashes(),
      tokens: [...session.tokens()],
      work: session.work(),
      logits: [...session.logits()],
      step: session.lastStep,
    });
    failure('not_empty', () => session.prefill([1]));
    failure('token_out_of_range', () => session.decode(99));
    failure('cache_full', () => session.extend([1, 2]));
    failure('token_out_of_range', () => session.replay({ tokens: [99] }));
    failure('invalid_length', () => session.truncate(0));
    session.begin('extend', [4]);
    failure('call_in_progress', () => session.decode(1));
    failure('call_in_progress', () => session.replay());
    session.advance();
    session.abandon();
    expect(now()).toEqual(before);
  });
});

test('where in the forward pass a call failed is part of the error', () => {
  const { site, message } = failure('non_finite_value', ways.non_finite_value[0]);
  expect(site).toMatchObject({ layer: expect.any(Number), position: 0 });
  expect(STAGES).toContain(site!.stage);
  expect(message).toMatch(/layer/);
});
