/**
 * From text to token ids and back.
 */
import { KvLensError } from '../errors.js';
import { bpeEncoder } from './bpe.js';
import { Pieces, type Piece, type StreamDecoder, type TokenizerParts } from './pieces.js';
import { sentencePieceEncoder } from './sentencepiece.js';
import { tokenizerJsonParts } from './tokenizer-json.js';
import type { TokenizerData } from './tokenizer-data.js';

export type { Piece, StreamDecoder } from './pieces.js';

/** What is put around a text; what is left out follows the checkpoint's own rule. */
export interface EncodeOptions {
  /** Whether the ids begin with BOS. */
  readonly addBos?: boolean;
  /** Whether the ids end with EOS. */
  readonly addEos?: boolean;
}

/** A checkpoint's tokenizer. Synchronous and stateless: one serves any number of texts. */
export interface Tokenizer {
  /** Ids are `0 .. vocabSize - 1`; the model's own vocabulary may be padded beyond. */
  readonly vocabSize: number;
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  /** Ids after which generation ends. */
  readonly stopIds: readonly number[];
  /**
   * Ids of `text`. The names of special tokens in the text, such as `<|im_end|>`, become those
   * tokens.
   * Errors: invalid_argument (BOS or EOS is asked for and there is none), invalid_tokenizer (a
   * character that the vocabulary cannot write).
   */
  encode(text: string, options?: EncodeOptions): Uint32Array;
  /** Text of a whole sequence, without control tokens. Errors: token_out_of_range. */
  decode(ids: Iterable<number>): string;
  /** One token. Errors: token_out_of_range. */
  piece(id: number): Piece;
  /**
   * Decodes tokens as they are generated; never returns a part of a character. `after`: the tokens
   * before them, which decide whether a first space is text or SentencePiece's own prefix. The
   * texts of both together equal `decode` of both. Errors: token_out_of_range.
   */
  decoder(after?: Iterable<number>): StreamDecoder;
}

/**
 * Makes the tokenizer that `data` describe.
 * Errors: invalid_tokenizer, unsupported_tokenizer.
 */
export function createTokenizer(data: TokenizerData): Tokenizer {
  const { pieces, special, encode } = partsOf(data);
  const { bosId, eosId } = special;
  return {
    vocabSize: pieces.size,
    bosId,
    eosId,
    stopIds: special.stopIds,
    encode(text, options = {}) {
      const ids = encode(text);
      if (options.addBos ?? special.addBos) ids.unshift(idOf(bosId, 'addBos', 'BOS'));
      if (options.addEos ?? special.addEos) ids.push(idOf(eosId, 'addEos', 'EOS'));
      return Uint32Array.from(ids);
    },
    decode: (ids) => pieces.decode(ids),
    piece: (id) => pieces.piece(id),
    decoder: (after) => pieces.decoder(after),
  };
}

function partsOf(data: TokenizerData): TokenizerParts {
  switch (data.kind) {
    case 'tokenizer.json':
      return tokenizerJsonParts(data);
    case 'bpe':
      return {
        pieces: new Pieces(data.tokens, data.types, 'byte-level', false),
        special: data,
        encode: bpeEncoder(data),
      };
    case 'sentencepiece':
      return {
        pieces: new Pieces(data.tokens, data.types, 'sentencepiece', data.addSpacePrefix),
        special: data,
        encode: sentencePieceEncoder(data),
      };
  }
}

function idOf(id: number | undefined, field: string, token: string): number {
  if (id !== undefined) return id;
  const context = { field, value: 'true', allowed: `false: the tokenizer has no ${token} token` };
  const message = `${field} is true, but the tokenizer has no ${token} token`;
  throw new KvLensError('invalid_argument', context, message);
}
