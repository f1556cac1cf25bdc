// A replay in steps gives the bytes of the replay at once, and one that is given up leaves nothing
// behind.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCore, type Core, type Model } from 'kvlens/core';
import { instanceOf } from '../../../dist/core/core.js';
import {
  failure,
  filledModel,
  randomModel,
  richConfig,
  sameBytes,
  smallConfig,
} from '../../support/kvlens.js';

let core: Core;
let model: Model;
beforeAll(async () => {
  core = await loadCore();
  model = randomModel(core, richConfig, 5n);
});
afterAll(() => {
  model.dispose();
  expect(core.memory()).toMatchObject({ liveHandles: 0, liveBuffers: 0, liveBytes: 0 });
  core.dispose();
});

const tokens = Uint32Array.from({ length: 21 }, (_, i) => (7 * i) % 50);

test.each(['f32', 'f64'] as const)(
  '%s: logits, work and evidence of the replay at once, whatever is called between',
  (compute) => {
    for (const chunkRows of [1, 8, 32]) {
      const session = core.createSession(model, { compute, chunkRows });
      session.prefill(tokens);
      for (const options of [
        {},
        { allLogits: true, capture: 'attention', layers: [1] },
        { capture: 'all', rows: 'last' },
      ] as const) {
        const expected = session.replay({ tokens, ...options });
        const replay = session.beginReplay({ tokens, ...options });
        // The embedding and two layers, then the head.
        const chunks = Math.ceil(21 / chunkRows);
        expect(replay.nSteps).toBe(3 * chunks + ('allLogits' in options ? chunks : 1));
        for (let left = replay.nSteps - 1; left >= 0; --left) {
          expect(replay.advance()).toBe(left);
          if (session.kvLen < 60) session.decode(left % 50);
        }
        expect(replay.advance()).toBe(0);
        const { milliseconds, logits, evidence, ...found } = replay.finish();
        expect(replay.disposed).toBe(true);
        expect(milliseconds).toBeGreaterThan(0);
        expect(sameBytes(logits.data, expected.logits.data)).toBe(true);
        expect(logits.shape).toEqual(expected.logits.shape);
        expect(evidence).toEqual(expected.evidence);
        expect(found).toEqual({ work: expected.work });
      }
      session.dispose();
    }
  },
);

test('given up after any step: session and memory are as before', () => {
  const session = core.createSession(model, { chunkRows: 8 });
  session.prefill(tokens);
  const state = () => ({
    memory: { ...core.memory(), heapBytes: 0 },
    hashes: session.cache.contentHashes(),
    work: session.work(),
    logits: session.logits(),
    lastStep: session.lastStep,
  });
  const before = state();
  for (let steps = 0; steps <= 10; ++steps) {
    const replay = session.beginReplay({ capture: 'all' });
    for (let step = 0; step < steps; ++step) replay.advance();
    replay.dispose();
    replay.dispose();
    expect(failure('disposed', () => replay.advance()).context).toEqual({ name: 'StepwiseReplay' });
    failure('disposed', () => replay.finish());
    expect(state()).toEqual(before);
  }
  session.dispose();
});

test('a session that is disposed of ends its replays', () => {
  const session = core.createSession(model);
  const replays = [
    session.beginReplay({ tokens: [1] }),
    session.beginReplay({ tokens: [1, 2], capture: 'all' }),
  ];
  replays[1]!.advance();
  session.dispose();
  for (const replay of replays) {
    expect(replay.disposed).toBe(true);
    failure('disposed', () => replay.advance());
  }
  failure('disposed', () => session.beginReplay({ tokens: [1] }));
});

test('what a replay refuses is refused when it begins; nothing is left of it', () => {
  const session = core.createSession(model);
  const before = { ...core.memory(), heapBytes: 0 };
  failure('empty_prompt', () => session.beginReplay());
  failure('token_out_of_range', () => session.beginReplay({ tokens: [50], capture: 'all' }));
  failure('prompt_exceeds_capacity', () => session.beginReplay({ tokens: Array(65).fill(1) }));
  failure('invalid_argument', () => session.beginReplay({ tokens: [1], allLogits: 1 as never }));
  session.begin('prefill', [1]);
  failure('call_in_progress', () => session.beginReplay({ tokens: [1] }));
  session.abandon();
  expect({ ...core.memory(), heapBytes: 0 }).toEqual(before);
  session.dispose();
});

test('an error in a step ends the replay', () => {
  // Finite weights whose product is not.
  const huge = filledModel(core, smallConfig, (name) => (name.endsWith('_proj') ? 1e30 : 1));
  const session = core.createSession(huge);
  const replay = session.beginReplay({ tokens: [1, 2] });
  expect(replay.advance()).toBe(replay.nSteps - 1);
  expect(failure('non_finite_value', () => replay.finish()).site).toMatchObject({
    layer: 0,
    position: 0,
  });
  expect(replay.disposed).toBe(true);
  session.dispose();
  huge.dispose();
});

test('any allocation of it can fail: the error is typed, and nothing is lost', () => {
  const session = core.createSession(model);
  const before = { ...core.memory(), heapBytes: 0 };
  const module = <T>(
    run: (raw: { failAllocationsAfter(n: number): void; clearAllocationFailure(): void }) => T,
  ): T => instanceOf(core).call(run);
  let failures = 0;
  for (let succeeded = false; !succeeded; ++failures) {
    module((raw) => raw.failAllocationsAfter(failures));
    try {
      const replay = session.beginReplay({ tokens, capture: 'all' });
      while (replay.advance() > 0);
      replay.finish();
      succeeded = true;
    } catch (error) {
      expect(error).toMatchObject({ code: 'out_of_memory' });
      expect({ ...core.memory(), heapBytes: 0 }).toEqual(before);
    } finally {
      module((raw) => raw.clearAllocationFailure());
    }
  }
  expect(failures).toBeGreaterThan(20);
  session.dispose();
});

test('hashes of several lengths in one pass are those of each', () => {
  const session = core.createSession(model);
  expect(session.cache.prefixHashes([0])).toEqual([session.cache.contentHashes(0)]);
  session.prefill(tokens);
  const { cache } = session;
  expect(cache.prefixHashes([21, 0, 7, 7])).toEqual(
    [21, 0, 7, 7].map((n) => cache.contentHashes(n)),
  );
  expect(cache.prefixHashes([])).toEqual([]);
  expect(new Set(Array.from({ length: 22 }, (_, n) => cache.layer(1).contentHash(n))).size).toBe(
    22,
  );
  expect(failure('invalid_length', () => cache.prefixHashes([3, 22])).context).toEqual({
    value: 22,
    limit: 21,
  });
  expect(failure('invalid_argument', () => cache.prefixHashes([1.5])).context.field).toBe(
    'lengths[0]',
  );
  expect(failure('invalid_argument', () => cache.contentHashes(-1)).context.field).toBe('nRows');
  session.dispose();
});
