/**
 * From text to token ids and back.
 */
import { KvLensError } from '../errors.js';
import type { AddedToken } from './added-tokens.js';
import { bpeEncoder } from './bpe.js';
import { ggufPreTokenizer, ggufPreTokenizerNames } from './gguf-pre-tokenizers.js';
import { byteCharacters } from './byte-level.js';
import { complete, type Steps } from './merging.js';
import { compilePattern } from './pattern.js';
import { Pieces, type Piece, type StreamDecoder, type TokenizerParts } from './pieces.js';
import { pipelineEncoder, type Encode } from './pipeline.js';
import { sentencePieceEncoder } from './sentencepiece.js';
import {
  isNamed,
  TokenType,
  type BpeData,
  type SentencePieceData,
  type TokenizerData,
} from './tokenizer-data.js';
import { tokenizerJsonParts } from './tokenizer-json.js';
import { unsupportedTokenizer } from './tokenizer-errors.js';
import { cut } from './words.js';

export type { Piece, StreamDecoder } from './pieces.js';

/** Options of `Tokenizer.encode`. BOS and EOS follow the checkpoint's rule by default. */
export interface EncodeOptions {
  /** Whether the ids begin with BOS. */
  readonly addBos?: boolean;
  /** Whether the ids end with EOS. */
  readonly addEos?: boolean;
  /**
   * Whether the names of control tokens in the text, such as `<|im_end|>`, become those tokens
   * (default true). Otherwise they are encoded like any other text.
   */
  readonly parseSpecial?: boolean;
  /** Ascending indices within the text; a name of a control token across one is ordinary text. */
  readonly literalAt?: readonly number[];
}

/** A checkpoint's tokenizer. It is synchronous and stateless: one serves any number of texts. */
export interface Tokenizer {
  /** Ids are `0 .. vocabSize - 1`; the vocabulary of the model may have more, without text. */
  readonly vocabSize: number;
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  /** Ids after which generation ends. */
  readonly stopIds: readonly number[];
  /**
   * The ids of `text`. What the vocabulary cannot write is dropped or becomes the unknown token, as
   * the tokenizer says. Errors: invalid_argument (BOS or EOS is requested and the tokenizer has
   * none, or the text is too long for a pattern), invalid_tokenizer (a SentencePiece vocabulary
   * cannot write a character).
   */
  encode(text: string, options?: EncodeOptions): Uint32Array<ArrayBuffer>;
  /** `encode` in steps of some ten milliseconds, for callers that pause in between. */
  encodeSteps(text: string, options?: EncodeOptions): Steps<Uint32Array<ArrayBuffer>>;
  /** The text of a whole sequence, without control tokens. Errors: token_out_of_range. */
  decode(ids: Iterable<number>): string;
  /** One token. Errors: token_out_of_range. */
  piece(id: number): Piece;
  /** The name of a control token, which has no text; undefined for any other id. */
  specialName(id: number): string | undefined;
  /** The names of all control tokens. */
  readonly specialNames: readonly string[];
  /**
   * A decoder for tokens as they are generated. It never returns part of a character. `after` are
   * the tokens before them, which decide whether a first space is text or SentencePiece's prefix.
   * The texts of both together equal `decode` of both. Errors: token_out_of_range.
   */
  decoder(after?: Iterable<number>): StreamDecoder;
}

/**
 * Makes the tokenizer that `data` describe. `vocabSize` is the number of ids that the model has.
 * Errors: invalid_tokenizer, unsupported_tokenizer.
 */
export function createTokenizer(data: TokenizerData, vocabSize = 0): Tokenizer {
  const { pieces, special, encode } = partsOf(data, vocabSize);
  const { bosId, eosId } = special;
  function* encodeSteps(
    text: string,
    options: EncodeOptions = {},
  ): Steps<Uint32Array<ArrayBuffer>> {
    const { parseSpecial = true, literalAt = [] } = options;
    // A lone surrogate has no UTF-8 form.
    const wellFormed = text.replace(/\p{Cs}/gu, '\ufffd');
    const ids = yield* attempt(encode(wellFormed, { parseSpecial, literalAt }));
    if (options.addBos ?? special.addBos) ids.unshift(idOf(bosId, 'addBos', 'BOS'));
    if (options.addEos ?? special.addEos) ids.push(idOf(eosId, 'addEos', 'EOS'));
    return Uint32Array.from(ids);
  }
  return {
    vocabSize: pieces.size,
    bosId,
    eosId,
    stopIds: special.stopIds,
    encode: (text, options) => complete(encodeSteps(text, options)),
    encodeSteps,
    decode: (ids) => pieces.decode(ids),
    piece: (id) => pieces.piece(id),
    specialName: (id) => pieces.specialName(id),
    get specialNames() {
      return pieces.specialNames;
    },
    decoder: (after) => pieces.decoder(after),
  };
}

/** Matching a pattern can exhaust the stack of the engine's regular expressions. */
function* attempt<T>(steps: Steps<T>): Steps<T> {
  try {
    return yield* steps;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const context = { field: 'text', value: 'too long', allowed: 'a shorter text' };
    const message = 'the text is too long for the patterns of the tokenizer';
    throw new KvLensError('invalid_argument', context, message, error);
  }
}

function partsOf(data: TokenizerData, vocabSize: number): TokenizerParts {
  switch (data.kind) {
    case 'tokenizer.json':
      return tokenizerJsonParts(data, vocabSize);
    case 'bpe': {
      const decoding = { alphabet: 'byte-level', start: 'keep' } as const;
      return {
        pieces: new Pieces(data.tokens, data.types, decoding, vocabSize),
        special: data,
        encode: bpePipeline(data),
      };
    }
    case 'sentencepiece': {
      const start = data.addSpacePrefix ? 'drop-space' : 'keep';
      const decoding = { alphabet: 'sentencepiece', start } as const;
      return {
        pieces: new Pieces(data.tokens, data.types, decoding, vocabSize),
        special: data,
        encode: sentencePiecePipeline(data),
      };
    }
  }
}

/** Byte-level BPE from GGUF metadata. */
function bpePipeline(data: BpeData): Encode {
  const pre = ggufPreTokenizer(data.pre);
  if (pre === undefined) {
    throw unsupportedTokenizer('tokenizer.ggml.pre', data.pre, ggufPreTokenizerNames);
  }
  const patterns = pre.patterns.map(compilePattern);
  return pipelineEncoder({
    added: namedTokens(data),
    normalize: pre.composed ? (text) => text.normalize('NFC') : undefined,
    preTokenize: (words) =>
      patterns
        .reduce((parts, pattern) => cut(parts, pattern, 'Isolated'), words)
        .map((word) => ({ ...word, text: byteCharacters(word.text) })),
    encodeWord: bpeEncoder({
      idOf: new Map(data.tokens.map((token, id) => [token, id])),
      merges: data.merges.map(pairOf),
      skipsUnknownMerges: true,
      ignoreMerges: pre.ignoreMerges,
    }),
  });
}

/** A pair of GGUF metadata: a space that is not the first character separates its tokens. */
function pairOf(merge: string): readonly [string, string] {
  const at = merge.indexOf(' ', 1);
  return [merge.slice(0, at), merge.slice(at + 1)];
}

function sentencePiecePipeline(data: SentencePieceData): Encode {
  const encodeText = sentencePieceEncoder(data);
  return pipelineEncoder({
    added: namedTokens(data),
    normalize: data.addSpacePrefix ? (text) => ` ${text}` : undefined,
    encodeWord: encodeText,
  });
}

function namedTokens({ tokens, types }: BpeData | SentencePieceData): AddedToken[] {
  const strips = { singleWord: false, lstrip: false, rstrip: false };
  return tokens.flatMap((content, id) =>
    isNamed(types[id])
      ? [{ id, content, special: types[id] !== TokenType.userDefined, ...strips }]
      : [],
  );
}

function idOf(id: number | undefined, field: string, token: string): number {
  if (id !== undefined) return id;
  const context = { field, value: 'true', allowed: `false: the tokenizer has no ${token} token` };
  const message = `${field} is true, but the tokenizer has no ${token} token`;
  throw new KvLensError('invalid_argument', context, message);
}
