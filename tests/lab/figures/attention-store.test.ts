import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { loadCore } from 'kvlens/core';
import { AttentionStore, evidenceBytes } from '../../../web/lab/src/figures/attention-store.js';
import { meanScores, rowScores, inductionKeys } from '../../../web/lab/src/figures/head-stats.js';
import { evidenceOf, replayOf, weightRow } from './matrices.js';

const nHeads = 2;
const nLayers = 3;
const layers = [0, 1, 2];
const tokens = (first: number, n: number) => Array.from({ length: n }, (_, i) => (first + i) % 5);

/** Rows of a 4-token prefill and of decodes up to `length`. */
function filled(length: number, budgetBytes = 1 << 20): AttentionStore {
  const store = new AttentionStore({ nLayers, nHeads, budgetBytes });
  store.append(tokens(0, 4), evidenceOf({ nHeads, layers, firstPosition: 0, nRows: 4 }));
  for (let position = 4; position < length; ++position) {
    store.append(
      tokens(position, 1),
      evidenceOf({ nHeads, layers, firstPosition: position, nRows: 1 }),
    );
  }
  return store;
}

const rowsOf = (store: AttentionStore, layer: number, head: number) =>
  Array.from({ length: store.length }, (_, query) => {
    const row = store.matrix({ layer, head }).row(query);
    return row && [...row];
  });

describe('AttentionStore', () => {
  test('has every row as its call gave it', () => {
    const store = filled(7);
    for (const layer of layers) {
      for (let head = 0; head < nHeads; ++head) {
        expect(rowsOf(store, layer, head)).toEqual(
          Array.from({ length: 7 }, (_, query) => weightRow(layer, head, query)),
        );
      }
    }
    expect(store.source(1)).toEqual({ state: 'kept', replayedRows: 0 });
  });

  test('moves its revision with every change', () => {
    const store = filled(5);
    const before = store.revision.value;
    store.append(tokens(5, 1), evidenceOf({ nHeads, layers, firstPosition: 5, nRows: 1 }));
    expect(store.revision.value).toBe(before + 1);
  });

  test('averages heads row by row', () => {
    const store = filled(6);
    const mean = store.matrix({ layer: 1, head: 'mean' }).row(5)!;
    const [a, b] = [weightRow(1, 0, 5), weightRow(1, 1, 5)];
    expect([...mean]).toEqual(a.map((weight, key) => (weight + b[key]!) / 2));
  });

  test('gives the column of a position as incoming weights', () => {
    const store = filled(6);
    const incoming = store.incoming({ layer: 2, head: 1 }, 3)!;
    expect([...incoming]).toEqual([
      NaN,
      NaN,
      NaN,
      weightRow(2, 1, 3)[3],
      weightRow(2, 1, 4)[3],
      weightRow(2, 1, 5)[3],
    ]);
    const mean = store.incoming({ layer: 2, head: 'mean' }, 5)!;
    expect(mean[5]).toBe((weightRow(2, 0, 5)[5]! + weightRow(2, 1, 5)[5]!) / 2);
  });

  test('refuses evidence of other positions and stays as it was', () => {
    const store = filled(4);
    expect(() =>
      store.append([1], evidenceOf({ nHeads, layers, firstPosition: 7, nRows: 1 })),
    ).toThrow(RangeError);
    expect(store.length).toBe(4);
    expect(store.source(0).state).toBe('kept');
  });
});

describe('scores', () => {
  test('are those of the rows, averaged without row 0', () => {
    const store = filled(9);
    const all = tokens(0, 9);
    const expected = meanScores(
      Array.from({ length: 8 }, (_, i) =>
        rowScores(Float32Array.from(weightRow(0, 1, i + 1)), inductionKeys(all, i + 1)),
      ),
    );
    expect(store.scores(0)![1]).toEqual(expected);
    expect(store.scores(0, 6)![1]).toEqual(
      rowScores(Float32Array.from(weightRow(0, 1, 6)), inductionKeys(all, 6)),
    );
  });

  test('are computed when the page is idle, a row at a time while there is time, and are the same', () => {
    const asked: IdleRequestCallback[] = [];
    vi.stubGlobal('requestIdleCallback', (callback: IdleRequestCallback) => asked.push(callback));
    onTestFinished(() => void vi.unstubAllGlobals());
    const store = filled(9);
    expect(asked).toHaveLength(1);
    // 9 rows of 3 layers; time for ten of them, then for all.
    let left = 10;
    asked.pop()!({ didTimeout: false, timeRemaining: () => left-- });
    expect(left).toBe(-1);
    expect(asked).toHaveLength(1);
    left = 100;
    asked.pop()!({ didTimeout: false, timeRemaining: () => left-- });
    expect(left).toBe(100 - 17);
    expect(asked).toHaveLength(0);
    vi.unstubAllGlobals();
    const all = (from: AttentionStore) => layers.map((layer) => from.scores(layer));
    expect(all(store)).toEqual(all(filled(9)));
    // Rows that go before the page was idle have been scored by then.
    for (const change of [
      (changed: AttentionStore) => changed.truncate(5),
      (changed: AttentionStore) => changed.append(tokens(9, 1)),
    ]) {
      const [late, scored] = [filled(9), filled(9)];
      all(scored);
      for (const each of [late, scored]) change(each);
      expect(all(late)).toEqual(all(scored));
    }
  });
});

describe('budget', () => {
  // A layer of n rows takes 2 heads x 4 bytes x n (n + 1) / 2.
  const layerBytes = (n: number) => nHeads * 4 * ((n * (n + 1)) / 2);

  test('drops the layers in focus least recently, and never the one in focus', () => {
    const store = filled(4, 2 * layerBytes(8) + layerBytes(7));
    store.focus(0);
    store.focus(2);
    for (let position = 4; position < 8; ++position) {
      store.append(
        tokens(position, 1),
        evidenceOf({ nHeads, layers, firstPosition: position, nRows: 1 }),
      );
    }
    expect(layers.map((layer) => store.source(layer).state)).toEqual(['kept', 'dropped', 'kept']);
    expect(store.usage().bytes).toBeLessThanOrEqual(store.budgetBytes);
    expect(store.usage().keptLayers).toBe(2);
  });

  test('keeps of a dropped layer the newest row, the scores and the thumbnails', () => {
    const store = filled(8, 1);
    const whole = filled(8);
    store.focus(2);
    store.append(tokens(8, 1), evidenceOf({ nHeads, layers, firstPosition: 8, nRows: 1 }));
    whole.append(tokens(8, 1), evidenceOf({ nHeads, layers, firstPosition: 8, nRows: 1 }));
    expect(store.source(1)).toEqual({ state: 'dropped', replayedRows: 0 });
    expect(rowsOf(store, 1, 0)).toEqual([
      ...Array<undefined>(8).fill(undefined),
      weightRow(1, 0, 8),
    ]);
    expect(store.incoming({ layer: 1, head: 0 }, 2)).toBeUndefined();
    expect(store.scores(1)).toEqual(whole.scores(1));
    expect(store.pooled({ layer: 1, head: 'mean' }).blocks).toEqual(
      whole.pooled({ layer: 1, head: 'mean' }).blocks,
    );
  });

  test('a replay makes a layer whole and is told apart', () => {
    const store = filled(8, 1);
    store.focus(1);
    store.addReplay([1], replayOf(nHeads, [1], 8));
    expect(store.source(1)).toEqual({ state: 'kept', replayedRows: 7 });
    expect(rowsOf(store, 1, 1)).toEqual(
      Array.from({ length: 8 }, (_, query) => weightRow(1, 1, query)),
    );
    store.append(tokens(8, 1), evidenceOf({ nHeads, layers, firstPosition: 8, nRows: 1 }));
    expect(store.source(1)).toEqual({ state: 'kept', replayedRows: 7 });
  });
});

describe('rows that were not captured', () => {
  test('are known to be missing until a replay brings them', () => {
    const store = new AttentionStore({ nLayers, nHeads });
    store.append(tokens(0, 6), evidenceOf({ nHeads, layers: [0, 2], firstPosition: 5, nRows: 1 }));
    expect(layers.map((layer) => store.source(layer).state)).toEqual(['never', 'never', 'never']);
    expect(rowsOf(store, 0, 1).map((row) => row !== undefined)).toEqual([
      false,
      false,
      false,
      false,
      false,
      true,
    ]);
    expect(store.rowsPooled(0)).toBe(1);
    expect(store.scores(1, 5)).toBeUndefined();
    store.addReplay([0, 1, 2], replayOf(nHeads, layers, 6));
    expect(layers.map((layer) => store.source(layer))).toEqual([
      { state: 'kept', replayedRows: 5 },
      { state: 'kept', replayedRows: 6 },
      { state: 'kept', replayedRows: 5 },
    ]);
    expect(store.scores(1)).toEqual(filled(6).scores(1));
    expect(store.pooled({ layer: 1, head: 0 }).blocks).toEqual(
      filled(6).pooled({ layer: 1, head: 0 }).blocks,
    );
  });
});

describe('truncate', () => {
  test('leaves what a shorter history has', () => {
    const store = filled(9);
    store.truncate(6);
    const shorter = filled(6);
    expect(rowsOf(store, 2, 1)).toEqual(rowsOf(shorter, 2, 1));
    expect(store.scores(2)).toEqual(shorter.scores(2));
    expect(store.pooled({ layer: 2, head: 1 }).blocks).toEqual(
      shorter.pooled({ layer: 2, head: 1 }).blocks,
    );
    expect(store.usage().bytes).toBe(shorter.usage().bytes);
  });
  test('of a dropped layer forgets thumbnails whose rows are gone, and says so', () => {
    const store = filled(9, 1);
    store.focus(0);
    store.truncate(5);
    expect(store.rowsPooled(2)).toBe(0);
    expect(store.source(2).state).toBe('dropped');
    expect(store.scores(2)).toEqual(filled(5).scores(2));
  });
  test('to nothing is a fresh store', () => {
    const store = filled(9, 1);
    store.clear();
    expect(store.length).toBe(0);
    expect(store.usage().bytes).toBe(0);
    expect(store.source(2)).toEqual({ state: 'kept', replayedRows: 0 });
  });
});

describe('with the package', () => {
  test('what a call captured, dropped and replayed comes back bit for bit', async () => {
    using core = await loadCore();
    const config = {
      nLayers: 2,
      nHeads: 4,
      nKvHeads: 2,
      headDim: 8,
      dModel: 32,
      dFf: 48,
      vocabSize: 40,
      maxSeqLen: 32,
    };
    using model = core.randomModel(config, { rng: { state: 5n } });
    using session = core.createSession(model);
    const store = new AttentionStore({ nLayers: 2, nHeads: 4 });
    const prompt = [3, 1, 4, 1, 5, 9, 2, 6];
    store.append(prompt, session.prefill(prompt, { capture: 'attention' }).evidence);
    for (const token of [5, 3, 5])
      store.append([token], session.decode(token, { capture: 'attention' }).evidence);

    const tight = new AttentionStore({ nLayers: 2, nHeads: 4, budgetBytes: 1 });
    tight.append(session.tokens());
    tight.focus(1);
    tight.addReplay([1], session.replay({ capture: 'attention', layers: [1] }).evidence!.attention);
    for (const head of [0, 3, 'mean'] as const) {
      for (let query = 0; query < 11; ++query) {
        expect(tight.matrix({ layer: 1, head }).row(query)).toEqual(
          store.matrix({ layer: 1, head }).row(query),
        );
      }
    }
    expect(tight.scores(1)).toEqual(store.scores(1));
  });

  test('evidenceBytes is the size of the evidence', async () => {
    using core = await loadCore();
    const config = {
      nLayers: 2,
      nHeads: 4,
      nKvHeads: 2,
      headDim: 8,
      dModel: 32,
      dFf: 48,
      vocabSize: 40,
      maxSeqLen: 32,
    };
    using model = core.randomModel(config, { rng: { state: 5n } });
    using session = core.createSession(model, { compute: 'f64' });
    session.prefill([1, 2, 3]);
    const { evidence } = session.extend([4, 5], { capture: 'attention' });
    expect(evidence!.attention.data.byteLength).toBe(evidenceBytes(config, 3, 2, 'f64'));
  });
});
