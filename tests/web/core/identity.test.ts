// The cache is only an optimisation: for every storage type, both compute types, every way of
// splitting a prompt, and every position, cached logits are the bytes of a complete-prefix replay.
import { beforeAll, describe, expect, test } from 'vitest';
import { DTYPES, type ComputeType, type Core, type StepOptions } from 'kvlens/core';
import { sameBytes, sharedCore } from '../../support/kvlens.js';
import { typedConfig, typedModel } from '../../support/typed-models.js';

let core: Core;
beforeAll(async () => {
  core = await sharedCore();
});

const tokens = [3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 4];

describe.each(DTYPES)('weights stored as %s', (dtype) => {
  test.each(['f32', 'f64'] as ComputeType[])('computed in %s', (compute) => {
    const model = typedModel(core, dtype);
    expect(
      model
        .parameters()
        .filter(({ shape }) => shape.length === 2)
        .every((parameter) => parameter.dtype === dtype),
    ).toBe(true);
    const session = core.createSession(model, { compute, chunkRows: 4 });
    const all = session.replay({ tokens, allLogits: true });
    const { vocabSize } = model.config;
    const replayed = (position: number) =>
      all.logits.data.subarray(position * vocabSize, (position + 1) * vocabSize);
    expect(new Set(all.logits.data).size).toBeGreaterThan(vocabSize);

    // Prefill of 5, then one token at a time: at each position the replay's bytes.
    expect(sameBytes(session.prefill(tokens.slice(0, 5)).logits, replayed(4))).toBe(true);
    for (let position = 5; position < tokens.length; ++position) {
      const { logits } = session.decode(tokens[position]!);
      expect(sameBytes(logits, replayed(position)), `position ${position}`).toBe(true);
    }
    const hashes = session.cache.contentHashes();
    expect(session.verify()).toMatchObject({
      bytesEqual: true,
      maxAbsDifference: 0,
      hashesBefore: hashes,
      hashesAfter: hashes,
    });

    // Other splits and chunks: the same logits and the same rows.
    for (const chunkRows of [1, 7, 32]) {
      const other = core.createSession(model, { compute, chunkRows });
      other.prefill(tokens.slice(0, 1 + (chunkRows % 11)));
      const { logits } = other.extend(tokens.slice(1 + (chunkRows % 11)));
      expect(sameBytes(logits, replayed(tokens.length - 1)), `chunks of ${chunkRows}`).toBe(true);
      expect(other.cache.contentHashes()).toEqual(hashes);
      // Steps with a pause, after a part has been dropped.
      other.truncate(3);
      expect(other.cache.contentHashes(3)).toEqual(session.cache.contentHashes(3));
      other.begin('extend', tokens.slice(3));
      while (other.advance() > 0);
      expect(sameBytes(other.finish().logits, replayed(tokens.length - 1))).toBe(true);
      other.dispose();
    }
    session.dispose();
    model.dispose();
  });
});

test("evidence is what was computed: it costs no bit, and its rows are the cache's", () => {
  const model = typedModel(core, 'f32');
  const plain = core.createSession(model);
  const watched = core.createSession(model, { chunkRows: 3 });
  const { logits } = plain.prefill(tokens);
  const step = watched.prefill(tokens, { capture: 'all' });
  expect(sameBytes(step.logits, logits)).toBe(true);
  const { attention, stages, layers, firstPosition, nRows } = step.evidence!;
  expect({ layers, firstPosition, nRows }).toEqual({
    layers: [0, 1],
    firstPosition: 0,
    nRows: tokens.length,
  });
  expect(attention.shape).toEqual([2, 8, tokens.length, tokens.length]);
  const T = tokens.length;
  const weight = (layer: number, head: number, row: number, column: number): number =>
    attention.data[((layer * 8 + head) * T + row) * T + column]!;
  for (const layer of layers) {
    for (let head = 0; head < 8; ++head) {
      for (let row = 0; row < T; ++row) {
        let sum = 0;
        for (let column = 0; column < T; ++column) {
          const w = weight(layer, head, row, column);
          sum += w;
          if (column > row || column <= row - typedConfig.slidingWindow!) expect(w).toBe(0);
        }
        expect(sum).toBeCloseTo(1, 5);
      }
    }
  }
  // [rows, kvHeads, headDim] of evidence, [kvHeads, rows, headDim] of the cache.
  const kRope = stages.find(({ stage, layer }) => stage === 'k_rope' && layer === 1)!;
  expect(kRope.shape).toEqual([T, 4, 32]);
  for (let head = 0; head < 4; ++head) {
    for (let row = 0; row < T; ++row) {
      const at = (row * 4 + head) * 32;
      expect(
        sameBytes(kRope.data.slice(at, at + 32), watched.cache.layer(1).keyRow(head, row)),
      ).toBe(true);
    }
  }
  const last = stages.find(({ stage }) => stage === 'logits')!;
  expect(sameBytes(last.data.slice(-40), logits)).toBe(true);
  expect(last.layer).toBe(2);

  // The same maps from a replay, of one layer, and of one row.
  const replay = watched.replay({ capture: 'attention', layers: [1] });
  expect(replay.evidence!.attention.shape).toEqual([1, 8, T, T]);
  expect(sameBytes(replay.evidence!.attention.data, attention.data.slice(8 * T * T))).toBe(true);
  const decoded = watched.decode(11, { capture: 'attention', layers: [0], rows: 'last' });
  expect(decoded.evidence!.attention.shape).toEqual([1, 8, 1, T + 1]);
  for (const handle of [plain, watched, model]) handle.dispose();
});

test('a step without logits leaves the same ones in the session', () => {
  const model = typedModel(core, 'q4_0');
  const session = core.createSession(model);
  const kept = core.createSession(model);
  const stepwise = (options: StepOptions) => (each: typeof session) => {
    each.begin('extend', tokens.slice(6), options);
    while (each.advance() > 0);
    return each.finish();
  };
  for (const call of [
    (options: StepOptions) => (each: typeof session) => each.prefill(tokens.slice(0, 3), options),
    (options: StepOptions) => (each: typeof session) => each.decode(tokens[3]!, options),
    (options: StepOptions) => (each: typeof session) => each.extend(tokens.slice(4, 6), options),
    stepwise,
  ]) {
    const { logits, milliseconds: _, ...step } = call({})(session);
    const { logits: none, milliseconds: __, ...without } = call({ logits: false })(kept);
    expect(none).toHaveLength(0);
    expect(without).toEqual(step);
    expect(sameBytes(kept.logits(), logits)).toBe(true);
  }
  for (const handle of [session, kept, model]) handle.dispose();
});
