/**
 * The normalizers of tokenizer.json: they rewrite a text before it is cut into words.
 */
import { byteCharacters } from './byte-level.js';
import { asObject, boolean, listOf, string, type Json } from './json-parts.js';
import { compilePattern, literalPattern } from './pattern.js';
import { unsupportedTokenizer } from './tokenizer-errors.js';

/** Rewrites a text. */
export type Normalizer = (text: string) => string;

/**
 * The normalizer that a part of tokenizer.json describes, or undefined if it is null or absent.
 * Errors: invalid_tokenizer, unsupported_tokenizer.
 */
export function normalizer(part: unknown): Normalizer | undefined {
  if (part === undefined || part === null) return undefined;
  const json = asObject(part, 'normalizer');
  const type = json['type'];
  switch (type) {
    case 'Sequence': {
      const steps = listOf(json, 'normalizers').map(normalizer);
      return (text) => steps.reduce((result, step) => (step ? step(result) : result), text);
    }
    case 'NFC':
    case 'NFD':
    case 'NFKC':
    case 'NFKD':
      return (text) => text.normalize(type);
    case 'Lowercase':
      // Character by character: no character depends on its neighbours, as a final sigma would.
      return (text) => Array.from(text, (char) => char.toLowerCase()).join('');
    case 'StripAccents':
      return (text) => text.replace(/\p{M}/gu, '');
    case 'Strip':
      return strip(json);
    case 'Prepend': {
      const prefix = string(json, 'prepend');
      return (text) => (text === '' ? text : prefix + text);
    }
    case 'Replace': {
      const pattern = patternOf(json);
      const content = string(json, 'content');
      return (text) => text.replace(pattern, () => content); // "$" has no meaning in `content`
    }
    case 'ByteLevel':
      return byteCharacters;
    default: {
      const supported =
        'Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace and ByteLevel';
      throw unsupportedTokenizer('normalizer', type, supported);
    }
  }
}

function strip(json: Json): Normalizer {
  const left = boolean(json, 'strip_left', false);
  const right = boolean(json, 'strip_right', false);
  return (text) => {
    const start = left ? text.replace(/^\p{White_Space}+/u, '') : text;
    return right ? start.slice(0, endWithoutSpace(start)) : start;
  };
}

/** Length of `text` without the white space at its end. */
export function endWithoutSpace(text: string): number {
  let end = text.length; // all white space is in the Basic Multilingual Plane
  while (end > 0 && /\p{White_Space}/u.test(text.charAt(end - 1))) --end;
  return end;
}

/** The field `pattern`, which is `{"String": ...}` or `{"Regex": ...}`. */
export function patternOf(json: Json): RegExp {
  const pattern = asObject(json['pattern'], 'pattern');
  if (pattern['String'] !== undefined) return literalPattern(string(pattern, 'String'));
  return compilePattern(string(pattern, 'Regex'));
}
