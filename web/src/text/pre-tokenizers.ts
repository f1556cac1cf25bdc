/**
 * The pre-tokenizers of tokenizer.json: they cut a text into words. Merging happens within words.
 */
import { byteCharacters } from './byte-level.js';
import { asObject, boolean, listOf, string, type Json } from './json-parts.js';
import { patternOf } from './normalizers.js';
import { compilePattern, literalPattern } from './pattern.js';
import { invalidTokenizer, unsupportedTokenizer } from './tokenizer-errors.js';
import { behaviors, cut, type Behavior, type Word } from './words.js';

/** Cuts words into smaller ones, and may rewrite them. */
export type PreTokenizer = (words: readonly Word[]) => readonly Word[];

/** The pattern of GPT-2, which the ByteLevel pre-tokenizer applies. */
export const gpt2Pattern =
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

const punctuation = /[\p{P}$+<=>^`|~]/gu;
// "Word" is what it is in Rust's regular expressions.
const wordsAndSymbols =
  /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\p{White_Space}]+/gu;
const whiteSpace = /\p{White_Space}/gu;

/**
 * The pre-tokenizer that a part of tokenizer.json describes, or undefined if it is null or absent.
 * Errors: invalid_tokenizer, unsupported_tokenizer.
 */
export function preTokenizer(part: unknown): PreTokenizer | undefined {
  if (part === undefined || part === null) return undefined;
  const json = asObject(part, 'pre_tokenizer');
  switch (json['type']) {
    case 'Sequence': {
      const steps = listOf(json, 'pretokenizers').map(preTokenizer);
      return (words) => steps.reduce((result, step) => (step ? step(result) : result), words);
    }
    case 'ByteLevel':
      return byteLevel(json);
    case 'Metaspace':
      return metaspace(json);
    case 'Split': {
      const pattern = patternOf(json);
      const behavior = behaviorOf(json);
      const invert = boolean(json, 'invert', false);
      return (words) => cut(words, pattern, behavior, invert);
    }
    case 'Digits': {
      const behavior = boolean(json, 'individual_digits', false) ? 'Isolated' : 'Contiguous';
      return (words) => cut(words, /\p{N}/gu, behavior);
    }
    case 'Punctuation': {
      const behavior = json['behavior'] === undefined ? 'Isolated' : behaviorOf(json);
      return (words) => cut(words, punctuation, behavior);
    }
    case 'Whitespace':
      return (words) => cut(words, wordsAndSymbols, 'Removed', true);
    case 'WhitespaceSplit':
      return (words) => cut(words, whiteSpace, 'Removed');
    case 'BertPreTokenizer':
      return (words) => cut(cut(words, whiteSpace, 'Removed'), punctuation, 'Isolated');
    case 'CharDelimiterSplit': {
      const pattern = literalPattern(string(json, 'delimiter'));
      return (words) => cut(words, pattern, 'Removed');
    }
    default: {
      const supported =
        'Sequence, ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, ' +
        'BertPreTokenizer and CharDelimiterSplit';
      throw unsupportedTokenizer('pre_tokenizer', json['type'], supported);
    }
  }
}

function behaviorOf(json: Json): Behavior {
  const name = string(json, 'behavior');
  if (behaviors.has(name)) return name as Behavior;
  throw invalidTokenizer('behavior', name, [...behaviors].join(', '));
}

function byteLevel(json: Json): PreTokenizer {
  const addsSpace = boolean(json, 'add_prefix_space', true);
  const pattern = boolean(json, 'use_regex', true) ? compilePattern(gpt2Pattern) : undefined;
  return (words) => {
    const spaced = addsSpace ? words.map((word) => prefixed(word, ' ')) : words;
    const parts = pattern ? cut(spaced, pattern, 'Isolated') : spaced;
    return parts.map((word) => ({ ...word, text: byteCharacters(word.text) }));
  };
}

function metaspace(json: Json): PreTokenizer {
  const mark = string(json, 'replacement');
  if (Array.from(mark).length !== 1) {
    throw invalidTokenizer('replacement', mark, 'one character');
  }
  const scheme = metaspaceScheme(json);
  const splits = boolean(json, 'split', true);
  const pattern = literalPattern(mark);
  return (words) => {
    const marked = words.map((word): Word => {
      const replaced = { ...word, text: word.text.replaceAll(' ', () => mark) };
      const prepends = scheme === 'always' || (scheme === 'first' && word.isStart);
      return prepends ? prefixed(replaced, mark) : replaced;
    });
    return splits ? cut(marked, pattern, 'MergedWithNext') : marked;
  };
}

/** When a Metaspace pre-tokenizer or decoder expects a mark at the beginning. */
export function metaspaceScheme(json: Json): 'always' | 'first' | 'never' {
  if (!boolean(json, 'add_prefix_space', true)) return 'never';
  const scheme = json['prepend_scheme'] ?? 'always';
  if (scheme === 'always' || scheme === 'first' || scheme === 'never') return scheme;
  throw invalidTokenizer('prepend_scheme', scheme, 'always, first or never');
}

function prefixed(word: Word, prefix: string): Word {
  return word.text.startsWith(prefix) ? word : { ...word, text: prefix + word.text };
}
