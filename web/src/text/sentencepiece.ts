/**
 * SentencePiece BPE (Kudo and Richardson 2018) as Llama 2 uses it: of all neighbours whose union is
 * a token, the union with the highest score is made first, the leftmost of equals. Characters that
 * are not tokens become their bytes.
 */
import { KvLensError } from '../errors.js';
import { byteToken } from './bpe.js';
import { idLimit, mergeSymbols, type Steps } from './merging.js';
import { invalidTokenizer } from './tokenizer-errors.js';
import type { SentencePieceData } from './tokenizer-data.js';

/** Encodes text without special tokens. Errors: invalid_tokenizer. */
export function sentencePieceEncoder(data: SentencePieceData): (text: string) => Steps<number[]> {
  const idOf = new Map<string, number>();
  data.tokens.forEach((token, id) => idOf.set(token, id));
  const ranks = ranksOf(data.scores);
  const utf8 = new TextEncoder();
  const byteIds = Array.from({ length: 256 }, (_, byte) => idOf.get(byteToken(byte)));

  return function* (text) {
    const texts = [...data.tokens]; // by symbol: tokens, then the characters that are not tokens
    const symbolOf = new Map<string, number>();
    const symbols = Array.from(text.replaceAll(' ', '\u2581'), (char) => {
      const known = idOf.get(char) ?? symbolOf.get(char);
      if (known !== undefined) return known;
      symbolOf.set(char, texts.length);
      return texts.push(char) - 1;
    });
    const merged = yield* mergeSymbols(symbols, (left, right) => {
      const id = idOf.get(texts[left]! + texts[right]!);
      return id === undefined ? undefined : ranks[id]! * idLimit + id;
    });
    const ids: number[] = [];
    for (const symbol of merged) {
      if (symbol < data.tokens.length) {
        ids.push(symbol);
        continue;
      }
      for (const byte of utf8.encode(texts[symbol])) {
        const id = byteIds[byte] ?? data.unknownId;
        if (id === undefined) throw unwritable(texts[symbol]!);
        ids.push(id);
      }
    }
    return ids;
  };
}

/** For each token how many different scores are higher than its own. Errors: invalid_tokenizer. */
function ranksOf(scores: readonly number[]): number[] {
  const scoreless = scores.findIndex(Number.isNaN);
  if (scoreless >= 0) throw invalidTokenizer(`score of token ${scoreless}`, NaN, 'a number');
  const different = [...new Set(scores)].sort((a, b) => b - a);
  const rankOf = new Map(different.map((score, rank) => [score, rank]));
  return scores.map((score) => rankOf.get(score)!);
}

function unwritable(char: string): KvLensError {
  const context = { field: 'text', value: char, allowed: 'characters of the vocabulary' };
  const message = `the vocabulary has no token for ${JSON.stringify(char)} or its bytes`;
  return new KvLensError('invalid_tokenizer', context, message);
}
