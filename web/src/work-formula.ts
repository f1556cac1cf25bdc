/**
 * What the counters of a schedule must come to, from the configuration alone. The core counts where
 * the work is done; this formula is for showing work that was not done, and a test
 * compares it with counted work.
 */
import type { Config, Work } from './types.js';

/** Positions that the rows of `0..length - 1` see, added up. */
function visiblePositions({ slidingWindow }: Config, length: number): number {
  const triangle = (n: number): number => (n * (n + 1)) / 2;
  if (slidingWindow === 0 || length <= slidingWindow) return triangle(length);
  return triangle(slidingWindow) + (length - slidingWindow) * slidingWindow;
}

/**
 * `rows` rows through every layer, `scores` of them against visible keys a head, `logitRows` to the
 * vocabulary.
 */
function forwards(
  config: Config,
  rows: number,
  visible: number,
  logitRows: number,
): Omit<
  Work,
  | 'attentionScoreValues'
  | 'prefillTokens'
  | 'decodeTokens'
  | 'cacheAppends'
  | 'kvBytesRead'
  | 'kvBytesWritten'
> {
  const { nLayers, nHeads, nKvHeads, headDim, dModel, dFf, vocabSize } = config;
  const causal = nLayers * nHeads * visible;
  return {
    tokenForwards: rows,
    qkvProjectionRows: 3 * nLayers * rows,
    causalScoreValues: causal,
    multiplyAddsQkv: nLayers * rows * dModel * (nHeads + 2 * nKvHeads) * headDim,
    multiplyAddsScores: causal * headDim,
    multiplyAddsMix: causal * headDim,
    multiplyAddsOutput: nLayers * rows * nHeads * headDim * dModel,
    multiplyAddsFfn: 3 * nLayers * rows * dModel * dFf,
    multiplyAddsLogits: logitRows * vocabSize * dModel,
  };
}

/**
 * Work of one complete-prefix replay of `length` tokens. The bytes of keys and values are left at
 * 0.
 */
export function computedReplayWork(config: Config, length: number): Work {
  return {
    ...forwards(config, length, visiblePositions(config, length), 1),
    prefillTokens: 0,
    decodeTokens: 0,
    cacheAppends: 0,
    attentionScoreValues: config.nLayers * config.nHeads * length * length,
    kvBytesRead: 0,
    kvBytesWritten: 0,
  };
}
