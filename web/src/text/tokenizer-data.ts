/**
 * What a checkpoint tells about its tokenizer, before a tokenizer is made of it.
 */
/** What a token is; the numbers are those of GGUF's `tokenizer.ggml.token_type`. */
export const TokenType = {
  normal: 1,
  unknown: 2,
  /** Steers the model, is no text: `<s>`, `<|im_end|>`. */
  control: 3,
  /** Text that is always one token. */
  userDefined: 4,
  unused: 5,
  /** One byte, written `<0x0A>`. */
  byte: 6,
} as const;

/** Whether a token of this type is found in text by its name, before any merging. */
export function isNamed(type: number | undefined): boolean {
  return type === TokenType.control || type === TokenType.userDefined || type === TokenType.unknown;
}

/** Ids with a meaning of their own, and what is put around a text. */
export interface SpecialTokens {
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  readonly unknownId: number | undefined;
  /** Ids after which generation ends: end of text, turn or message, and the beginning of a text. */
  readonly stopIds: readonly number[];
  /** Whether `encode` begins with `bosId` and ends with `eosId`, unless it is told otherwise. */
  readonly addBos: boolean;
  readonly addEos: boolean;
}

/** Byte-level byte pair encoding, as GPT-2's, Llama 3's, Qwen's and SmolLM's. */
export interface BpeData extends SpecialTokens {
  readonly kind: 'bpe';
  /** By id, in the byte-level alphabet. */
  readonly tokens: readonly string[];
  /** `TokenType` by id. */
  readonly types: readonly number[];
  /** Pairs `left right` in order of rank. */
  readonly merges: readonly string[];
  /** How text is cut into words; the names of GGUF's `tokenizer.ggml.pre`. */
  readonly pre: string;
}

/** SentencePiece BPE with scores and byte fallback, as Llama 2's and llama2.c's. */
export interface SentencePieceData extends SpecialTokens {
  readonly kind: 'sentencepiece';
  /** By id, U+2581 for a space. */
  readonly tokens: readonly string[];
  readonly types: readonly number[];
  /** The pair whose token has the highest score is merged first. */
  readonly scores: readonly number[];
  /** Whether a text is encoded as if it began with a space. */
  readonly addSpacePrefix: boolean;
}

/** A Hugging Face tokenizer.json and tokenizer_config.json. */
export interface TokenizerJsonData {
  readonly kind: 'tokenizer.json';
  readonly json: Readonly<Record<string, unknown>>;
  readonly config: Readonly<Record<string, unknown>>;
  /** From config.json and generation_config.json; the tokenizer's own are added. */
  readonly stopIds: readonly number[];
}

/** Data of any kind of tokenizer. */
export type TokenizerData = BpeData | SentencePieceData | TokenizerJsonData;
