/**
 * Hugging Face's tokenizer.json and tokenizer_config.json: their parts as stages of the pipeline
 * that serves every tokenizer.
 */
import type { AddedToken } from './added-tokens.js';
import { bpeEncoder } from './bpe.js';
import { asObject, boolean, isObject, listOf, type Json } from './json-parts.js';
import { idLimit } from './merging.js';
import { normalizer } from './normalizers.js';
import { Pieces, type Decoding, type TokenizerParts } from './pieces.js';
import { pipelineEncoder } from './pipeline.js';
import { surroundings, type Surroundings } from './post-processors.js';
import { metaspaceScheme, preTokenizer } from './pre-tokenizers.js';
import { TokenType, type SpecialTokens, type TokenizerJsonData } from './tokenizer-data.js';
import { invalidTokenizer, unsupportedTokenizer } from './tokenizer-errors.js';

/**
 * Makes the tokenizer; `vocabSize` is the number of ids that the model has.
 * Errors: invalid_tokenizer, unsupported_tokenizer.
 */
export function tokenizerJsonParts(data: TokenizerJsonData, vocabSize = 0): TokenizerParts {
  const { json, config } = data;
  const model = asObject(json['model'], 'model');
  checkModel(model);
  const decoding = decodingOf(json['decoder']);
  const idOf = vocabularyOf(model);
  const added = addedTokens(json, config, idOf);

  const tokens: (string | undefined)[] = [];
  const types: (number | undefined)[] = [];
  for (const [token, id] of idOf) {
    tokens[id] = token;
    types[id] = TokenType.normal;
  }
  const normalize = normalizer(json['normalizer']) ?? ((text: string) => text);
  for (const { id, content, special, normalized } of added.values()) {
    idOf.set(content, id);
    // Python decodes a normalized token as it is found, for example with a mark before it.
    tokens[id] = normalized && !special ? normalize(content) : content;
    types[id] = special ? TokenType.control : TokenType.userDefined;
  }

  // Of tokens of the same name, a control token counts.
  const names = [...added.values()].sort((a, b) => Number(b.special) - Number(a.special));
  const encode = pipelineEncoder({
    added: names.filter((token) => !token.normalized),
    normalizedAdded: names
      .filter((token) => token.normalized)
      .map((token) => ({ ...token, content: normalize(token.content) })),
    normalize,
    preTokenize: preTokenizer(json['pre_tokenizer']),
    encodeWord: bpeEncoder({
      idOf: vocabularyOf(model),
      merges: mergesOf(model),
      unknownId: unknownIdOf(model, idOf),
      fusesUnknown: boolean(model, 'fuse_unk', false),
      byteFallback: boolean(model, 'byte_fallback', false),
      ignoreMerges: boolean(model, 'ignore_merges', false),
      continuingPrefix: text(model, 'continuing_subword_prefix'),
      wordSuffix: text(model, 'end_of_word_suffix'),
    }),
  });
  const around = surroundings(json['post_processor'], (token) => idOf.get(token));
  return {
    pieces: new Pieces(tokens, types, decoding, vocabSize),
    special: specialTokens(data, around, idOf),
    encode,
  };
}

function checkModel(model: Json): void {
  // Old files have no type; only BPE has merges.
  const type = model['type'] ?? (Array.isArray(model['merges']) ? 'BPE' : 'absent');
  if (type !== 'BPE') throw unsupportedTokenizer('model.type', type, 'BPE');
  if ((model['dropout'] ?? 0) !== 0) {
    throw unsupportedTokenizer('model.dropout', String(model['dropout']), 'no dropout');
  }
}

function checkId(id: unknown, token: string): number {
  if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < idLimit) return id;
  const name = `id of ${JSON.stringify(token)}`;
  throw invalidTokenizer(name, id, `an integer from 0 to ${idLimit - 1}`);
}

function vocabularyOf(model: Json): Map<string, number> {
  const vocab = asObject(model['vocab'], 'model.vocab');
  const idOf = new Map<string, number>();
  for (const [token, id] of Object.entries(vocab)) idOf.set(token, checkId(id, token));
  return idOf;
}

/** Pairs are lists in new files, and strings with one space in old ones. */
function mergesOf(model: Json): (readonly [string, string])[] {
  return listOf(model, 'merges').map((entry, rank) => {
    const pair: unknown[] = typeof entry === 'string' ? entry.split(' ') : (entry as unknown[]);
    const isPair =
      Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string');
    if (!isPair) throw invalidTokenizer(`merge ${rank}`, String(entry), 'a pair of tokens');
    return pair as unknown as [string, string];
  });
}

function unknownIdOf(model: Json, idOf: ReadonlyMap<string, number>): number | undefined {
  const token = model['unk_token'] ?? undefined;
  if (token === undefined) return undefined;
  const id = typeof token === 'string' ? idOf.get(token) : undefined;
  if (id === undefined) throw invalidTokenizer('unk_token', String(token), 'a token');
  return id;
}

function text(json: Json, field: string): string {
  const value = json[field] ?? '';
  if (typeof value === 'string') return value;
  throw invalidTokenizer(field, typeof value, 'a string');
}

interface JsonAddedToken extends AddedToken {
  /** Whether it is found in the normalized text. */
  readonly normalized: boolean;
}

// Fields of tokenizer_config.json that name a control token.
const namedTokens = ['bos', 'eos', 'unk', 'sep', 'pad', 'cls', 'mask'].map(
  (name) => `${name}_token`,
);

/**
 * The added tokens of tokenizer.json by content. Those that tokenizer_config.json names, as
 * `eos_token` for example, are control tokens whatever tokenizer.json says.
 */
function addedTokens(
  json: Json,
  config: Json,
  vocabulary: ReadonlyMap<string, number>,
): ReadonlyMap<string, JsonAddedToken> {
  const added = new Map<string, JsonAddedToken>();
  const put = (entry: Json, id: unknown): void => {
    const content = entry['content'];
    if (typeof content !== 'string') {
      throw invalidTokenizer('added_tokens', JSON.stringify(entry), 'tokens with content');
    }
    const special = boolean(entry, 'special', false);
    added.set(content, {
      id: checkId(id, content),
      content,
      special,
      singleWord: boolean(entry, 'single_word', false),
      lstrip: boolean(entry, 'lstrip', false),
      rstrip: boolean(entry, 'rstrip', false),
      normalized: boolean(entry, 'normalized', !special),
    });
  };
  const list =
    (json['added_tokens'] ?? undefined) === undefined ? [] : listOf(json, 'added_tokens');
  for (const entry of list) {
    const token = asObject(entry, 'added_tokens');
    put(token, token['id']);
  }
  const decoder = config['added_tokens_decoder'];
  for (const [id, entry] of isObject(decoder) ? Object.entries(decoder) : []) {
    if (isObject(entry)) put(entry, Number(id));
  }
  for (const field of namedTokens) {
    const content = nameIn(config, field);
    if (content === undefined) continue;
    const known = added.get(content);
    const id = known?.id ?? vocabulary.get(content);
    if (id === undefined) continue;
    added.set(content, {
      singleWord: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      content,
      ...known,
      id,
      special: true,
    });
  }
  return added;
}

/** The token that a field of tokenizer_config.json names. */
function nameIn(config: Json, field: string): string | undefined {
  const value = config[field];
  const content = isObject(value) ? value['content'] : value;
  return typeof content === 'string' && content !== '' ? content : undefined;
}

/** How the decoder turns tokens into text. */
function decodingOf(part: unknown): Decoding {
  // Without a decoder tokens are joined with spaces.
  if (part === undefined || part === null) return { alphabet: 'spaced', start: 'keep' };
  const decoder = asObject(part, 'decoder');
  const steps =
    decoder['type'] === 'Sequence'
      ? listOf(decoder, 'decoders').map((step) => asObject(step, 'decoders'))
      : [decoder];
  const kinds = steps.map((step) => step['type']);
  if (kinds.length === 1 && kinds[0] === 'ByteLevel') {
    return { alphabet: 'byte-level', start: 'keep' };
  }
  if (kinds.length === 1 && kinds[0] === 'Metaspace' && steps[0]!['replacement'] === '\u2581') {
    const start = metaspaceScheme(steps[0]!) === 'never' ? 'keep' : 'drop-marks';
    return { alphabet: 'marked', start };
  }
  const [replace, fallback, ...rest] = steps;
  const isMarked =
    replace?.['type'] === 'Replace' &&
    isObject(replace['pattern']) &&
    replace['pattern']['String'] === '\u2581' &&
    replace['content'] === ' ' &&
    fallback?.['type'] === 'ByteFallback';
  const [fuse, strip, ...others] = rest;
  const isFused = isMarked && (fuse === undefined || fuse['type'] === 'Fuse');
  if (isFused && strip === undefined) return { alphabet: 'sentencepiece', start: 'keep' };
  if (
    isFused &&
    others.length === 0 &&
    strip?.['type'] === 'Strip' &&
    strip['content'] === ' ' &&
    strip['stop'] === 0 &&
    (strip['start'] === 0 || strip['start'] === 1)
  ) {
    return { alphabet: 'sentencepiece', start: strip['start'] === 1 ? 'drop-space' : 'keep' };
  }
  const supported =
    'ByteLevel, Metaspace with U+2581, or Replace of U+2581 by a space, ByteFallback, Fuse and ' +
    'Strip of at most one space at the start';
  throw unsupportedTokenizer('decoder', kinds.join(', '), supported);
}

// Their classes in transformers make the post-processor themselves, from add_bos_token (true by
// default) and add_eos_token; every other class leaves it as it is.
const classesWithFlags = /^(?:Llama|CodeLlama|Gemma|Cohere)Tokenizer(?:Fast)?$/;

/** BOS and EOS as the post-processor, or the tokenizer's class, puts them around a text. */
function specialTokens(
  { config, stopIds }: TokenizerJsonData,
  { before, after }: Surroundings,
  idOf: ReadonlyMap<string, number>,
): SpecialTokens {
  if (before.length > 1 || after.length > 1) {
    const found = `${before.length} tokens before and ${after.length} after a text`;
    const supported = 'at most one token before and one after a text';
    throw unsupportedTokenizer('post_processor', found, supported);
  }
  const named = (field: string): number | undefined => idOf.get(nameIn(config, field) ?? '');
  const bosId = before[0] ?? named('bos_token');
  const eosId = after[0] ?? named('eos_token');
  const className = config['tokenizer_class'] ?? undefined;
  const hasFlags = typeof className === 'string' && classesWithFlags.test(className);
  const flag = (field: string, found: boolean, byClass: boolean, id: number | undefined) => {
    if (id === undefined) return false;
    const value = config[field] ?? undefined;
    if (hasFlags) return typeof value === 'boolean' ? value : byClass;
    return className === undefined && typeof value === 'boolean' ? value : found;
  };
  const stops = [eosId, named('eos_token'), ...stopIds, bosId].filter((id) => id !== undefined);
  return {
    bosId,
    eosId,
    unknownId: named('unk_token'),
    stopIds: [...new Set(stops)],
    addBos: flag('add_bos_token', before.length > 0, true, bosId),
    addEos: flag('add_eos_token', after.length > 0, false, eosId),
  };
}
