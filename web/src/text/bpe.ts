/**
 * Byte-level BPE from GGUF metadata: the metadata are rewritten as the tokenizer.json that they
 * came from.
 */
import { KvLensError } from '../errors.js';
import { hfTokenizer } from './hf-tokenizer.js';
import { preTokenizer, preTokenizerNames } from './pre-tokenizers.js';
import { unsupportedTokenizer } from './tokenizer-errors.js';
import { isNamed, TokenType, type BpeData } from './tokenizer-data.js';

// Stands for what the vocabulary cannot write; no byte-level token has a space.
const unwritable = ' unwritable ';

/** Encodes text, nothing put around it. Errors: unsupported_tokenizer, invalid_tokenizer. */
export function bpeEncoder(data: BpeData): (text: string) => number[] {
  const pre = preTokenizer(data.pre);
  if (pre === undefined) {
    throw unsupportedTokenizer('tokenizer.ggml.pre', data.pre, preTokenizerNames);
  }
  // Without a prototype, so that a token "__proto__" is a key like any other.
  const vocab = Object.create(null) as Record<string, number>;
  const addedTokens: object[] = [];
  data.tokens.forEach((content, id) => {
    vocab[content] = id;
    const type = data.types[id];
    if (isNamed(type)) {
      addedTokens.push({ id, content, special: type !== TokenType.userDefined, normalized: false });
    }
  });
  const split = (pattern: string) => ({
    type: 'Split',
    pattern: { Regex: pattern },
    behavior: 'Isolated',
    invert: false,
  });
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, use_regex: false };
  const json = {
    added_tokens: addedTokens,
    normalizer: pre.composed ? { type: 'NFC' } : null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: [...pre.patterns.map(split), byteLevel] },
    post_processor: null,
    decoder: null,
    model: {
      type: 'BPE',
      vocab,
      merges: data.merges,
      unk_token: unwritable,
      ignore_merges: pre.ignoreMerges,
    },
  };
  const tokenizer = hfTokenizer(json, {});
  return (text) => {
    const { ids, tokens } = tokenizer.encode(text, { add_special_tokens: false });
    if (tokens.includes(unwritable)) {
      const value = text.slice(0, 40);
      const context = { field: 'text', value, allowed: 'bytes of the vocabulary' };
      const message = `the vocabulary cannot write ${JSON.stringify(value)}`;
      throw new KvLensError('invalid_tokenizer', context, message);
    }
    return ids;
  };
}
