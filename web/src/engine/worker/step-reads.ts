/** What the worker reads after a forward call and sends along with its step. */
import type { Session } from '../../core-api.js';
import type { StepReadings, StepReads } from '../../engine-api.js';
import type { RankedToken } from '../../types.js';
import type { Tokenizer } from '../../text/tokenizer.js';

/** Whether `reads` asks for anything. */
export function wantsReads({ topTokens, prefixHashes, pieces }: StepReads): boolean {
  return topTokens !== undefined || prefixHashes !== undefined || pieces === true;
}

/** `tokenizer` is given if pieces are wanted. Errors: invalid_argument, invalid_length. */
export function readAfterStep(
  session: Session,
  tokens: ArrayLike<number>,
  { topTokens, prefixHashes }: StepReads,
  tokenizer: Tokenizer | undefined,
): StepReadings {
  return {
    ...(topTokens !== undefined && {
      topTokens: withPieces(session.topTokens(topTokens), tokenizer),
    }),
    ...(prefixHashes !== undefined && { prefixHashes: session.cache.prefixHashes(prefixHashes) }),
    ...(tokenizer && { pieces: Array.from(tokens, (id) => pieceOf(tokenizer, id)) }),
  };
}

/** Adds each candidate's piece of text, if there is a tokenizer. */
export function withPieces<T extends RankedToken>(
  ranked: readonly T[],
  tokenizer: Tokenizer | undefined,
): (T & { readonly piece?: string })[] {
  return ranked.map((each) => {
    const piece = tokenizer && pieceOf(tokenizer, each.token);
    return piece === undefined ? each : { ...each, piece };
  });
}

/** undefined for ids that a model has beyond its tokenizer's vocabulary, as padding. */
export function pieceOf(tokenizer: Tokenizer, id: number): string | undefined {
  return id < tokenizer.vocabSize ? tokenizer.piece(id).text : undefined;
}
