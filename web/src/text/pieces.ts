/**
 * What each token contributes to the text, and how a sequence of tokens becomes text.
 */
import { KvLensError } from '../errors.js';
import { bytesOfToken } from './byte-level.js';
import { TokenType, type SpecialTokens } from './tokenizer-data.js';

/** One token of a vocabulary. */
export interface Piece {
  /** As the vocabulary writes it, for display: `<s>`, `<0x0A>`, ` the`. */
  readonly text: string;
  /** What it adds to decoded text: possibly part of a character, nothing for a control token. */
  readonly bytes: Uint8Array;
  /** Whether it is a control token (or the unknown token) and no text. */
  readonly special: boolean;
}

/** How a vocabulary writes bytes as strings. */
export type Alphabet = 'byte-level' | 'sentencepiece';

const utf8 = new TextEncoder();
const nothing = new Uint8Array(0);

/** Turns token ids into text, piece by piece. */
export class Pieces {
  /**
   * @param tokens by id; undefined for an id without a token
   * @param types `TokenType` by id
   * @param dropFirstSpace whether text begins with a space that encoding has put there
   */
  constructor(
    private readonly tokens: readonly (string | undefined)[],
    private readonly types: readonly (number | undefined)[],
    private readonly alphabet: Alphabet,
    private readonly dropFirstSpace: boolean,
  ) {}

  /** Number of ids. */
  get size(): number {
    return this.tokens.length;
  }

  /** Errors: token_out_of_range. */
  piece(id: number, position = 0): Piece {
    if (!Number.isInteger(id) || id < 0 || id >= this.size) {
      const where = `token ${id} at position ${position}`;
      const message = `${where} is outside the vocabulary of ${this.size}`;
      throw new KvLensError('token_out_of_range', { position, id, vocabSize: this.size }, message);
    }
    const token = this.tokens[id];
    if (token === undefined) return { text: '', bytes: nothing, special: true };
    const type = this.types[id];
    if (type === TokenType.control || type === TokenType.unknown) {
      return { text: token, bytes: nothing, special: true };
    }
    const bytes = this.bytesOf(token, type);
    const text = type === TokenType.byte || type === TokenType.userDefined ? token : show(bytes);
    return { text, bytes, special: false };
  }

  private bytesOf(token: string, type: number | undefined): Uint8Array {
    if (type === TokenType.userDefined) return utf8.encode(token);
    if (this.alphabet === 'byte-level') return bytesOfToken(token) ?? utf8.encode(token);
    const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
    if (type === TokenType.byte && byte !== undefined) return Uint8Array.of(parseInt(byte, 16));
    return utf8.encode(token.replaceAll('\u2581', ' '));
  }

  /** Text of a whole sequence. Errors: token_out_of_range. */
  decode(ids: Iterable<number>): string {
    const decoder = this.decoder();
    let text = '';
    for (const id of ids) text += decoder.push(id);
    return text + decoder.end();
  }

  /** A decoder for what follows `after`: the beginning of a text where that holds no text. */
  decoder(after: Iterable<number> = []): StreamDecoder {
    let atStart = this.dropFirstSpace;
    for (const id of after) atStart &&= this.piece(id).bytes.length === 0;
    return new StreamDecoder(this, atStart);
  }
}

/** Text of tokens as they come; what is not yet a whole character is held back. */
export class StreamDecoder {
  private readonly utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
  private position = 0;

  constructor(
    private readonly pieces: Pieces,
    private dropSpace: boolean,
  ) {}

  /** The text that is complete with `id`; often empty. Errors: token_out_of_range. */
  push(id: number): string {
    const piece = this.pieces.piece(id, this.position++);
    let { bytes } = piece;
    if (bytes.length === 0) return '';
    if (this.dropSpace) {
      this.dropSpace = false;
      if (bytes[0] === 0x20) bytes = bytes.subarray(1);
    }
    return this.utf8.decode(bytes, { stream: true });
  }

  /** What was held back: U+FFFD if the tokens ended within a character. */
  end(): string {
    return this.utf8.decode();
  }
}

/** Bytes as text, broken characters as U+FFFD. */
function show(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

/** The parts that make up a tokenizer of any kind. */
export interface TokenizerParts {
  readonly pieces: Pieces;
  readonly special: SpecialTokens;
  /** Ids of a text, with nothing put around it. */
  readonly encode: (text: string) => number[];
}
