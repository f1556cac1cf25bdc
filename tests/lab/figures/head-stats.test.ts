import { describe, expect, test } from 'vitest';
import {
  entropy,
  inductionKeys,
  meanScores,
  rowScores,
} from '../../../web/lab/src/figures/head-stats.js';

describe('entropy', () => {
  test('is 0 bits when one key takes everything', () => {
    expect(entropy(Float32Array.of(0, 1, 0))).toBe(0);
  });
  test('is log2 n bits when n keys share equally', () => {
    expect(entropy(Float64Array.of(0.25, 0.25, 0.25, 0.25))).toBe(2);
  });
  test('of 1/2, 1/4, 1/4 is 1.5 bits', () => {
    expect(entropy(Float32Array.of(0.5, 0.25, 0.25))).toBe(1.5);
  });
});

describe('inductionKeys', () => {
  // Position 4 holds A again; A stood at 0, followed by the key at 1.
  const [A, B, C, D] = [7, 8, 9, 10];
  test('are the positions after earlier occurrences of the present token', () => {
    expect(inductionKeys([A, B, C, D, A], 4)).toEqual([1]);
    expect(inductionKeys([A, B, A, C, A], 4)).toEqual([1, 3]);
  });
  test('do not hold the present position, though it follows an occurrence directly', () => {
    expect(inductionKeys([B, A, A], 2)).toEqual([]);
  });
  test('are none for a token that is new', () => {
    expect(inductionKeys([A, B, C], 2)).toEqual([]);
    expect(inductionKeys([A], 0)).toEqual([]);
  });
});

describe('rowScores', () => {
  test('reads the previous and the first key and adds up the induction keys', () => {
    const row = Float64Array.of(0.125, 0.25, 0.125, 0.5, 0);
    expect(rowScores(row, [1, 3])).toEqual({
      entropy: 0.375 + 0.5 + 0.375 + 0.5,
      previous: 0.5,
      first: 0.125,
      induction: 0.75,
    });
  });
  test('of row 0 has an entropy alone', () => {
    expect(rowScores(Float32Array.of(1), [])).toEqual({
      entropy: 0,
      previous: NaN,
      first: NaN,
      induction: NaN,
    });
  });
});

describe('meanScores', () => {
  test('averages each score over the rows that define it', () => {
    const rows = [
      { entropy: 1, previous: 0.5, first: 0.5, induction: NaN },
      { entropy: 2, previous: 0.25, first: 0, induction: 0.75 },
    ];
    expect(meanScores(rows)).toEqual({
      entropy: 1.5,
      previous: 0.375,
      first: 0.25,
      induction: 0.75,
    });
  });
  test('of nothing is undefined', () => {
    expect(meanScores([])).toEqual({ entropy: NaN, previous: NaN, first: NaN, induction: NaN });
  });
});
