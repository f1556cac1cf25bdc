/**
 * The tokenizer and chat template in GGUF metadata.
 */
import { ggufPreTokenizer, ggufPreTokenizerNames } from '../text/gguf-pre-tokenizers.js';
import {
  TokenType,
  type BpeData,
  type SentencePieceData,
  type SpecialTokens,
} from '../text/tokenizer-data.js';
import type { Warnings } from './checkpoint.js';
import type { GgufMetadata } from './gguf.js';
import { invalid, unsupported } from './file-errors.js';

const prefix = 'tokenizer.ggml';

// Names of tokens that end a text, a turn or a part of a file, as llama.cpp knows them. Files name
// only some of them by id, and some files give them the wrong type.
const endNames = new Set([
  '<|eot_id|>',
  '<|im_end|>',
  '<|end|>',
  '<|return|>',
  '<|call|>',
  '<|flush|>',
  '<|calls|>',
  '<end_of_turn>',
  '<|endoftext|>',
  '</s>',
  '<|eom_id|>',
  '<EOT>',
  '_<EOT>',
  '[EOT]',
  '[EOS]',
  '<|end_of_text|>',
  '<end_of_utterance>',
  '<eos>',
  '<turn|>',
  '<|tool_response>',
  '<\uff5cend\u2581of\u2581sentence\uff5c>',
  '[e~[',
  '<|fim_pad|>',
  '<fim-pad>',
  '<fim_pad>',
  '<PAD>',
  '[PAD]',
  '<|fim_repo|>',
  '<|repo_name|>',
  '<fim-repo>',
  '<REPO>',
  '<reponame>',
  '<|file_sep|>',
]);

// Keys of ids that end a generation.
const endKeys = ['eos', 'eot', 'eom', 'fim_pad', 'fim_rep', 'fim_sep'];

/**
 * The tokenizer, or undefined for a file that states that it has none. Special ids outside the
 * vocabulary are warnings.
 * Errors: invalid_file, unsupported_file (another kind of tokenizer or pre-tokenizer).
 */
export function ggufTokenizer(
  metadata: GgufMetadata,
  warnings: Warnings,
): BpeData | SentencePieceData | undefined {
  const { file } = metadata;
  const model = metadata.string(`${prefix}.model`);
  if (model === undefined || model === 'none' || model === 'no_vocab') return undefined;
  if (model !== 'gpt2' && model !== 'llama') {
    throw unsupported(file, `${prefix}.model`, model, 'gpt2 and llama');
  }
  const tokens = metadata.strings(`${prefix}.tokens`);
  if (tokens === undefined || tokens.length === 0) {
    throw invalid(file, `${prefix}.tokens`, undefined, 'an array of strings');
  }
  if (new Set(tokens).size !== tokens.length) {
    const seen = new Set<string>();
    const twice = tokens.find((token) => seen.size === seen.add(token).size);
    throw invalid(file, `${prefix}.tokens`, twice, 'unique tokens');
  }
  const types = [
    ...(ofLength(metadata, `${prefix}.token_type`, tokens.length) ??
      new Array<number>(tokens.length).fill(TokenType.normal)),
  ];
  const endIds = endTokens(tokens, types, model === 'gpt2');
  if (model === 'gpt2') {
    const pre = metadata.string(`${prefix}.pre`);
    const preTokenizer = pre === undefined ? undefined : ggufPreTokenizer(pre);
    if (pre === undefined || preTokenizer === undefined) {
      throw unsupported(file, `${prefix}.pre`, pre, ggufPreTokenizerNames);
    }
    const merges = metadata.strings(`${prefix}.merges`);
    if (merges === undefined) {
      throw invalid(file, `${prefix}.merges`, merges, 'an array of strings');
    }
    const special = specialTokens(metadata, warnings, tokens, endIds, preTokenizer.addBos);
    return { kind: 'bpe', tokens, types, merges, pre, ...special };
  }
  const scores = ofLength(metadata, `${prefix}.scores`, tokens.length);
  if (scores === undefined) throw invalid(file, `${prefix}.scores`, scores, 'an array of numbers');
  const addSpacePrefix = metadata.boolean(`${prefix}.add_space_prefix`, true);
  const defaults = { bos: 1, eos: 2, unknown: 0 };
  const special = specialTokens(metadata, warnings, tokens, endIds, true, defaults);
  return { kind: 'sentencepiece', tokens, types, scores, addSpacePrefix, ...special };
}

/** The chat template, if the file has one. */
export function ggufChatTemplate(metadata: GgufMetadata): string | undefined {
  return metadata.string('tokenizer.chat_template');
}

function ofLength(
  metadata: GgufMetadata,
  key: string,
  length: number,
): readonly number[] | undefined {
  const values = metadata.numbers(key);
  if (values !== undefined && values.length !== length) {
    throw invalid(metadata.file, `length of ${key}`, values.length, `${length}, one per token`);
  }
  return values;
}

/**
 * The ids of the tokens whose names end a generation. `types` gets their type, control.
 *
 * An ordinary `</s>` in a byte-level vocabulary is text: Qwen 3 has one, as a piece of code.
 */
function endTokens(tokens: readonly string[], types: number[], isByteLevel: boolean): number[] {
  const ids = new Map<string, number>();
  tokens.forEach((token, id) => {
    if (endNames.has(token)) ids.set(token, id);
  });
  const has = (...names: string[]) => names.every((name) => ids.has(name));
  const remove = (name: string, type: number): void => {
    types[ids.get(name)!] = type;
    ids.delete(name);
  };
  const closing = ids.get('</s>');
  if (closing !== undefined && isByteLevel && types[closing] === TokenType.normal) {
    ids.delete('</s>');
  }
  // In these vocabularies the token ends a part of a turn.
  const calls = has('<|call|>') || has('<|calls|>');
  if (has('<|end|>') && calls && (has('<|return|>') || has('<|flush|>'))) {
    remove('<|end|>', TokenType.userDefined);
  }
  if (has('<|tool_response>', '</s>')) remove('</s>', TokenType.normal);
  for (const id of ids.values()) types[id] = TokenType.control;
  return [...ids.values()];
}

function specialTokens(
  metadata: GgufMetadata,
  warnings: Warnings,
  tokens: readonly string[],
  endIds: readonly number[],
  addBosByDefault: boolean,
  defaults: { bos?: number; eos?: number; unknown?: number } = {},
): SpecialTokens {
  const { file } = metadata;
  const id = (name: string, fallback?: number): number | undefined => {
    const key = `${prefix}.${name}_token_id`;
    if (!metadata.has(key)) return fallback;
    const value = metadata.integer(key, -(2 ** 31), 2 ** 32 - 1);
    if (value >= 0 && value < tokens.length) return value;
    const instead = fallback === undefined ? 'no token' : `token ${fallback}`;
    const place = `it is outside the vocabulary of ${tokens.length}`;
    warnings.add(file, key, value, `${place}, and ${instead} takes its place`);
    return fallback;
  };
  const inVocabulary = (value: number | undefined) =>
    value !== undefined && value < tokens.length ? value : undefined;
  const bosId = id('bos', inVocabulary(defaults.bos));
  const eosId = id('eos', inVocabulary(defaults.eos));
  const stops = [eosId, ...endKeys.slice(1).map((name) => id(name)), bosId, ...endIds];
  const adds = (name: string, byDefault: boolean, found: number | undefined): boolean => {
    const key = `${prefix}.add_${name}_token`;
    const wanted = metadata.boolean(key, byDefault);
    if (wanted && found === undefined && metadata.has(key)) {
      warnings.add(file, key, true, 'the tokenizer has no such token, and none is added');
    }
    return wanted && found !== undefined;
  };
  return {
    bosId,
    eosId,
    unknownId: id('unknown', inVocabulary(defaults.unknown)),
    stopIds: [...new Set(stops.filter((stop) => stop !== undefined))],
    addBos: adds('bos', addBosByDefault, bosId),
    addEos: adds('eos', false, eosId),
  };
}
