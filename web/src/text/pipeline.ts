/**
 * From text to ids, for every kind of tokenizer: find added tokens, normalize the text between
 * them, cut it into words, and encode the words.
 */
import { AddedTokens, type AddedToken } from './added-tokens.js';
import type { WordEncoder } from './bpe.js';
import type { Steps } from './merging.js';
import type { Normalizer } from './normalizers.js';
import type { PreTokenizer } from './pre-tokenizers.js';

/** The stages of an encoding. */
export interface Pipeline {
  /** Tokens that are found in the text as it is. */
  readonly added: readonly AddedToken[];
  /** Tokens that are found in the normalized text; their `content` is normalized too. */
  readonly normalizedAdded?: readonly AddedToken[];
  readonly normalize?: Normalizer | undefined;
  readonly preTokenize?: PreTokenizer | undefined;
  readonly encodeWord: WordEncoder;
}

/** How one text is encoded. */
export interface PipelineOptions {
  /** Whether the names of control tokens in the text become those tokens. */
  readonly parseSpecial: boolean;
  /** Indices within the text, in order, that no control token may contain except as its first. */
  readonly literalAt: readonly number[];
}

/** Encodes a text without anything put around it. */
export type Encode = (text: string, options: PipelineOptions) => Steps<number[]>;

// Characters of words between two yields.
const unitsPerStep = 1 << 16;

export function pipelineEncoder(pipeline: Pipeline): Encode {
  const raw = new AddedTokens(pipeline.added);
  const normalized = new AddedTokens(pipeline.normalizedAdded ?? []);
  const { normalize = (text: string) => text, preTokenize, encodeWord } = pipeline;

  return function* (text, { parseSpecial, literalAt }) {
    const ids: number[] = [];
    let units = 0;
    const sections = raw.cut(
      text,
      (token, start, end) => !token.special || (parseSpecial && isFree(literalAt, start, end)),
    );
    for (const section of sections) {
      if (section.id !== undefined) {
        ids.push(section.id);
        continue;
      }
      if (section.text.length >= unitsPerStep) yield;
      const parts = normalized.cut(
        normalize(section.text),
        (token) => !token.special || parseSpecial,
      );
      for (const part of parts) {
        if (part.id !== undefined) {
          ids.push(part.id);
          continue;
        }
        const word = { text: part.text, isStart: section.isStart && part.isStart };
        for (const { text: cutText } of preTokenize ? preTokenize([word]) : [word]) {
          for (const id of yield* encodeWord(cutText)) ids.push(id);
          units += cutText.length;
          if (units < unitsPerStep) continue;
          units = 0;
          yield;
        }
      }
    }
    return ids;
  };
}

/** Whether no position of the sorted list lies strictly between `start` and `end`. */
function isFree(positions: readonly number[], start: number, end: number): boolean {
  let low = 0;
  let high = positions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle]! > start) high = middle;
    else low = middle + 1;
  }
  return low === positions.length || positions[low]! >= end;
}
