/**
 * The tokenizer and chat template in GGUF metadata.
 */
import { preTokenizer } from '../text/pre-tokenizers.js';
import {
  TokenType,
  type BpeData,
  type SentencePieceData,
  type SpecialTokens,
} from '../text/tokenizer-data.js';
import type { GgufMetadata } from './gguf.js';
import { invalid, unsupported } from './file-errors.js';

const prefix = 'tokenizer.ggml';

// Control tokens that end a turn or a text in the chat formats of the supported families; files
// name only one of them as `eos_token_id`.
const endTexts = new Set([
  '</s>',
  '<|endoftext|>',
  '<|end_of_text|>',
  '<|im_end|>',
  '<|eot_id|>',
  '<|eom_id|>',
  '<|end|>',
]);

/**
 * The tokenizer, or undefined for a file that says it has none.
 * Errors: invalid_file, unsupported_file (another kind of tokenizer).
 */
export function ggufTokenizer(metadata: GgufMetadata): BpeData | SentencePieceData | undefined {
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
  const types =
    ofLength(metadata, `${prefix}.token_type`, tokens.length) ??
    new Array<number>(tokens.length).fill(TokenType.normal);
  if (model === 'gpt2') {
    const pre = metadata.string(`${prefix}.pre`);
    if (pre === undefined) throw unsupported(file, `${prefix}.pre`, pre, 'a named pre-tokenizer');
    const merges = metadata.strings(`${prefix}.merges`);
    if (merges === undefined) {
      throw invalid(file, `${prefix}.merges`, merges, 'an array of strings');
    }
    const special = specialTokens(metadata, tokens, types, preTokenizer(pre)?.addBos ?? false);
    return { kind: 'bpe', tokens, types, merges, pre, ...special };
  }
  const scores = ofLength(metadata, `${prefix}.scores`, tokens.length);
  if (scores === undefined) throw invalid(file, `${prefix}.scores`, scores, 'an array of numbers');
  const addSpacePrefix = metadata.boolean(`${prefix}.add_space_prefix`, true);
  const special = specialTokens(metadata, tokens, types, true, { bos: 1, eos: 2, unknown: 0 });
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
    throw invalid(metadata.file, `length of ${key}`, values.length, `${length}, one a token`);
  }
  return values;
}

function specialTokens(
  metadata: GgufMetadata,
  tokens: readonly string[],
  types: readonly number[],
  addBosByDefault: boolean,
  defaults: { bos?: number; eos?: number; unknown?: number } = {},
): SpecialTokens {
  const id = (name: string, fallback?: number): number | undefined => {
    const key = `${prefix}.${name}_token_id`;
    if (!metadata.has(key)) return fallback;
    return metadata.integer(key, 0, tokens.length - 1);
  };
  const bosId = id('bos', defaults.bos);
  const eosId = id('eos', defaults.eos);
  const stops = [eosId, id('eot'), id('eom'), bosId];
  tokens.forEach((token, i) => {
    if (endTexts.has(token) && types[i] !== TokenType.normal) stops.push(i);
  });
  const addBos = metadata.boolean(`${prefix}.add_bos_token`, addBosByDefault);
  const addEos = metadata.boolean(`${prefix}.add_eos_token`, false);
  for (const [wanted, found, name] of [
    [addBos, bosId, 'bos'],
    [addEos, eosId, 'eos'],
  ] as const) {
    if (wanted && found === undefined) {
      const allowed = `an id, as add_${name}_token is true`;
      throw invalid(metadata.file, `${prefix}.${name}_token_id`, undefined, allowed);
    }
  }
  return {
    bosId,
    eosId,
    unknownId: id('unknown', defaults.unknown),
    stopIds: [...new Set(stops.filter((stop) => stop !== undefined))],
    addBos,
    addEos,
  };
}
