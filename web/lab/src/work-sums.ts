// Sums over the engine's work counters, in one place for every part that shows them.
import type { Work } from 'kvlens';

export type Stage = 'qkv' | 'scores' | 'mix' | 'output' | 'ffn' | 'logits';

/** The multiply-adds of each stage, in the order in which a forward pass reaches it. */
export const multiplyAddsByStage = (work: Work): readonly (readonly [Stage, number])[] => [
  ['qkv', work.multiplyAddsQkv],
  ['scores', work.multiplyAddsScores],
  ['mix', work.multiplyAddsMix],
  ['output', work.multiplyAddsOutput],
  ['ffn', work.multiplyAddsFfn],
  ['logits', work.multiplyAddsLogits],
];

export const totalMultiplyAdds = (work: Work): number =>
  multiplyAddsByStage(work).reduce((sum, [, count]) => sum + count, 0);
