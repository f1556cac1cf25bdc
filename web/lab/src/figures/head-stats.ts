// Scores of one row of attention, and their means over rows.
//
// Let a[t, s] be the weight that position t gives to position s, and x[t] the token at t.
// - entropy: -sum over s of a[t, s] log2 a[t, s], in bits: 0 when one key takes everything, log2 n
//   when n keys share equally.
// - previous: a[t, t-1]. A high mean is a previous-token head.
// - first: a[t, 0]. A high mean is the attention sink of Xiao et al., "Efficient Streaming Language
//   Models with Attention Sinks", 2023 (arXiv:2309.17453).
// - induction: the sum of a[t, s] over the keys 0 < s < t whose preceding token is the present one,
//   x[s-1] = x[t]: the prefix-matching score of Olsson et al., "In-context Learning and Induction
//   Heads", 2022 (arXiv:2209.11895), on the present text and not on repeated random tokens.
//   Undefined (NaN) in a row whose token did not occur before, or only directly before.
//
// Row 0 sees itself alone, so each of its scores is fixed by that; means leave it out.
import type { Weights } from './types.js';

export const HEAD_SCORES = ['entropy', 'previous', 'first', 'induction'] as const;

export type HeadScore = (typeof HEAD_SCORES)[number];

/** A score that no row defines is NaN. */
export type HeadScores = Readonly<Record<HeadScore, number>>;

/** Bits. Weights of 0 add nothing. */
export function entropy(row: Weights): number {
  let sum = 0;
  for (let key = 0; key < row.length; ++key) {
    const weight = row[key]!;
    if (weight > 0) sum -= weight * Math.log2(weight);
  }
  return sum;
}

/** The keys `0 < s < t` with `tokens[s - 1] === tokens[t]`, ascending. */
export function inductionKeys(tokens: ArrayLike<number>, t: number): number[] {
  const keys: number[] = [];
  for (let s = 1; s < t; ++s) {
    if (tokens[s - 1] === tokens[t]) keys.push(s);
  }
  return keys;
}

/** The scores of the row of position `t = row.length - 1`; `keys` are those of `inductionKeys`. */
export function rowScores(row: Weights, keys: readonly number[]): HeadScores {
  const t = row.length - 1;
  return {
    entropy: entropy(row),
    previous: t > 0 ? row[t - 1]! : NaN,
    first: t > 0 ? row[0]! : NaN,
    induction: keys.length > 0 ? keys.reduce((sum, s) => sum + row[s]!, 0) : NaN,
  };
}

/** The mean of scores as they come: each score over those that define it. */
export class RunningScores {
  readonly #sums = HEAD_SCORES.map(() => 0);
  readonly #counts = HEAD_SCORES.map(() => 0);

  add(scores: HeadScores): void {
    for (let i = 0; i < HEAD_SCORES.length; ++i) {
      const value = scores[HEAD_SCORES[i]!];
      if (Number.isNaN(value)) continue;
      this.#sums[i]! += value;
      this.#counts[i]! += 1;
    }
  }

  mean(): HeadScores {
    const of = (i: number) => (this.#counts[i]! > 0 ? this.#sums[i]! / this.#counts[i]! : NaN);
    return { entropy: of(0), previous: of(1), first: of(2), induction: of(3) };
  }
}

/** The mean of the scores that are defined, score by score. */
export function meanScores(all: Iterable<HeadScores>): HeadScores {
  const running = new RunningScores();
  for (const scores of all) running.add(scores);
  return running.mean();
}
