/**
 * Byte pair encoding by a list of merges (Sennrich et al. 2016), as Hugging Face's tokenizers
 * defines it.
 */
import { invalidTokenizer } from './tokenizer-errors.js';
import { idLimit, mergeSymbols, rankLimit, type Steps } from './merging.js';

/** What a BPE model consists of. */
export interface BpeModel {
  readonly idOf: ReadonlyMap<string, number>;
  /** Pairs in order of rank. */
  readonly merges: readonly (readonly [string, string])[];
  /** Whether merges of tokens that the vocabulary lacks are left out; otherwise they are errors. */
  readonly skipsUnknownMerges?: boolean;
  /** Stands for characters that the vocabulary lacks. Without it they are dropped. */
  readonly unknownId?: number | undefined;
  /** Whether neighbouring unknown characters become one token. */
  readonly fusesUnknown?: boolean;
  /** Whether a character that the vocabulary lacks becomes its bytes, written `<0x0A>`. */
  readonly byteFallback?: boolean;
  /** Whether a word that is a token is taken whole, without merging. */
  readonly ignoreMerges?: boolean;
  /** Written before every character of a word but the first. */
  readonly continuingPrefix?: string;
  /** Written after the last character of a word. */
  readonly wordSuffix?: string;
}

/** Encodes one word. */
export type WordEncoder = (word: string) => Steps<readonly number[]>;

const cacheSize = 1 << 14;
const longestCached = 64;

/** Errors: invalid_tokenizer (a merge of tokens that the vocabulary lacks). */
export function bpeEncoder(model: BpeModel): WordEncoder {
  const { idOf, continuingPrefix = '', wordSuffix = '' } = model;
  const merges = mergeTable(model, continuingPrefix.length);
  const find = (left: number, right: number) => merges.get(left * idLimit + right);
  const utf8 = new TextEncoder();
  const byteIds = Array.from({ length: 256 }, (_, byte) =>
    model.byteFallback === true ? idOf.get(byteToken(byte)) : undefined,
  );

  const symbolsOf = (word: string): number[] => {
    const symbols: number[] = [];
    let unknown = 0; // characters that wait to be written as the unknown token
    const flush = (): void => {
      if (unknown > 0) symbols.push(model.unknownId!);
      unknown = 0;
    };
    let at = 0;
    for (const char of word) {
      const isFirst = at === 0;
      at += char.length;
      const symbol =
        (isFirst ? '' : continuingPrefix) + char + (at === word.length ? wordSuffix : '');
      const id = idOf.get(symbol);
      if (id !== undefined) {
        flush();
        symbols.push(id);
        continue;
      }
      const bytes = Array.from(utf8.encode(symbol), (byte) => byteIds[byte]);
      if (bytes.every((byte) => byte !== undefined)) {
        symbols.push(...bytes); // a waiting unknown token comes after them
        continue;
      }
      if (model.unknownId === undefined) continue;
      if (model.fusesUnknown !== true) flush();
      ++unknown;
    }
    flush();
    return symbols;
  };

  const cache = new Map<string, readonly number[]>();
  return function* (word) {
    const known = cache.get(word);
    if (known !== undefined) return known;
    const whole = model.ignoreMerges === true ? idOf.get(word) : undefined;
    const ids = whole === undefined ? yield* mergeSymbols(symbolsOf(word), find) : [whole];
    if (word.length <= longestCached) {
      if (cache.size >= cacheSize) cache.clear();
      cache.set(word, ids);
    }
    return ids;
  };
}

/** The token of a byte under byte fallback: `<0x0A>`. */
export function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
}

/** From pair to merge, as `FindMerge` gives it. */
function mergeTable(model: BpeModel, prefixLength: number): Map<number, number> {
  const { idOf, merges } = model;
  if (merges.length >= rankLimit) {
    throw invalidTokenizer('number of merges', merges.length, `below ${rankLimit}`);
  }
  const table = new Map<number, number>();
  merges.forEach(([left, right], rank) => {
    const leftId = idOf.get(left);
    const rightId = idOf.get(right);
    const id = idOf.get(left + right.slice(prefixLength));
    if (leftId !== undefined && rightId !== undefined && id !== undefined) {
      table.set(leftId * idLimit + rightId, rank * idLimit + id);
    } else if (model.skipsUnknownMerges !== true) {
      throw invalidTokenizer(`merge ${rank}`, `${left} ${right}`, 'tokens of the vocabulary');
    }
  });
  return table;
}
