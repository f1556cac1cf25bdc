import { expect, test } from 'vitest';
import { linearFactors, llama3Factors } from '../../../web/src/files/rope.js';

test('linear scaling divides every frequency alike', () => {
  expect(linearFactors(4, 8)).toEqual([4, 4, 4, 4]);
  expect(linearFactors(1, 8)).toEqual([]);
});

// Llama 3.2 1B: theta 500000, heads of 64, factor 32 over 8192 positions. Pairs 0..14 turn more
// than four times in 8192 positions, pairs 18.. less than once.
test('llama3 scaling keeps fast pairs, slows slow ones, and goes over between', () => {
  const scaling = {
    factor: 32,
    lowFreqFactor: 1,
    highFreqFactor: 4,
    originalMaxPositionEmbeddings: 8192,
  };
  const factors = llama3Factors(scaling, 500000, 64);
  const between = [1.651329245764, 3.292262102941, 9.666728978753];
  const expected = [
    ...new Array<number>(15).fill(1),
    ...between,
    ...new Array<number>(14).fill(32),
  ];
  expect(factors).toHaveLength(32);
  factors.forEach((factor, i) => expect(factor).toBeCloseTo(expected[i] as number, 11));
});
