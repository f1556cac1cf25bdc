/**
 * Hugging Face's tokenizer.json: encoding by `@huggingface/tokenizers`, decoding by the same pieces
 * as every other tokenizer, so that it can stream.
 */
import { hfTokenizer, type HfTokenizer } from './hf-tokenizer.js';
import { Pieces, type Alphabet, type TokenizerParts } from './pieces.js';
import { invalidTokenizer, unsupportedTokenizer } from './tokenizer-errors.js';
import { TokenType, type SpecialTokens, type TokenizerJsonData } from './tokenizer-data.js';

type Json = Readonly<Record<string, unknown>>;

/** Errors: invalid_tokenizer, unsupported_tokenizer. */
export function tokenizerJsonParts(data: TokenizerJsonData): TokenizerParts {
  const model = asObject(data.json['model']);
  if (model?.['type'] !== 'BPE') throw unsupportedTokenizer('model.type', model?.['type'], 'BPE');
  const { alphabet, dropFirstSpace } = alphabetOf(asObject(data.json['decoder']));
  const vocab = asObject(model['vocab']);
  if (vocab === undefined)
    throw invalidTokenizer('model.vocab', typeof model['vocab'], 'an object');

  const tokens: (string | undefined)[] = [];
  const types: (number | undefined)[] = [];
  const put = (id: unknown, token: string, type: number) => {
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= 1 << 24) {
      throw invalidTokenizer(`id of ${JSON.stringify(token)}`, id, 'an integer from 0 to 2^24');
    }
    tokens[id] = token;
    types[id] = type;
  };
  const hasBytes = model['byte_fallback'] === true;
  const isByte = (token: string) => hasBytes && /^<0x[0-9A-F]{2}>$/.test(token);
  for (const [token, id] of Object.entries(vocab)) {
    put(id, token, isByte(token) ? TokenType.byte : TokenType.normal);
  }
  const added = data.json['added_tokens'];
  for (const entry of Array.isArray(added) ? (added as unknown[]) : []) {
    const token = asObject(entry);
    if (typeof token?.['content'] !== 'string')
      throw invalidTokenizer('added_tokens', entry, 'tokens');
    const type = token['special'] === true ? TokenType.control : TokenType.userDefined;
    put(token['id'], token['content'], type);
  }

  let tokenizer: HfTokenizer;
  try {
    tokenizer = hfTokenizer(data.json, data.config);
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    throw unsupportedTokenizer(
      'tokenizer.json',
      found,
      'the parts that @huggingface/tokenizers has',
      error,
    );
  }
  const encode = (text: string) => tokenizer.encode(text, { add_special_tokens: false }).ids;
  const idOf = (token: string) => tokenizer.token_to_id(token);
  return {
    pieces: new Pieces(tokens, types, alphabet, dropFirstSpace),
    special: specialTokens(data, tokenizer, encode, idOf),
    encode,
  };
}

/** How tokens are written, as the decoder undoes it. */
function alphabetOf(decoder: Json | undefined): { alphabet: Alphabet; dropFirstSpace: boolean } {
  const nested = decoder?.['decoders'];
  const steps = (Array.isArray(nested) ? (nested as unknown[]) : [decoder]).map(asObject);
  const step = (type: string) => steps.find((entry) => entry?.['type'] === type);
  if (step('ByteLevel')) return { alphabet: 'byte-level', dropFirstSpace: false };
  const metaspace = step('Metaspace');
  if (metaspace) {
    const scheme = metaspace['prepend_scheme'] ?? 'always';
    const dropFirstSpace = metaspace['add_prefix_space'] !== false && scheme !== 'never';
    return { alphabet: 'sentencepiece', dropFirstSpace };
  }
  if (step('ByteFallback')) {
    const strip = step('Strip');
    const dropFirstSpace = strip?.['content'] === ' ' && strip['start'] === 1;
    return { alphabet: 'sentencepiece', dropFirstSpace };
  }
  const supported = 'ByteLevel, Metaspace, or ByteFallback in a Sequence';
  throw unsupportedTokenizer('decoder', decoder?.['type'], supported);
}

/** BOS and EOS as the post-processor puts them around a text; tokenizer_config.json overrules. */
function specialTokens(
  data: TokenizerJsonData,
  tokenizer: HfTokenizer,
  encode: (text: string) => number[],
  idOf: (token: string) => number | undefined,
): SpecialTokens {
  const probe = 'a';
  const bare = encode(probe);
  const whole = tokenizer.encode(probe, { add_special_tokens: true }).ids;
  const start = whole.findIndex((_, i) => bare.every((id, j) => whole[i + j] === id));
  const before = whole.slice(0, Math.max(start, 0));
  const after = whole.slice(start + bare.length);
  if (start < 0 || before.length > 1 || after.length > 1) {
    const found = JSON.stringify(whole);
    throw unsupportedTokenizer(
      'post_processor',
      found,
      'at most one token before and one after a text',
    );
  }
  const named = (field: string) => {
    const token = data.config[field];
    const content = typeof token === 'string' ? token : asObject(token)?.['content'];
    return typeof content === 'string' ? idOf(content) : undefined;
  };
  const flag = (field: string, found: boolean, id: number | undefined) => {
    const value = data.config[field];
    return typeof value === 'boolean' && id !== undefined ? value : found;
  };
  const bosId = before[0] ?? named('bos_token');
  const eosId = after[0] ?? named('eos_token');
  const stops = [eosId, ...data.stopIds, bosId].filter((id) => id !== undefined);
  return {
    bosId,
    eosId,
    unknownId: named('unk_token'),
    stopIds: [...new Set(stops)],
    addBos: flag('add_bos_token', before.length > 0, bosId),
    addEos: flag('add_eos_token', after.length > 0, eosId),
  };
}

function asObject(value: unknown): Json | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Json) : undefined;
}
