/**
 * From tokens to text: what each token contributes, and how a sequence of tokens becomes text.
 */
import { KvLensError } from '../errors.js';
import { bytesOfToken } from './byte-level.js';
import type { Encode } from './pipeline.js';
import { TokenType, type SpecialTokens } from './tokenizer-data.js';

/** One token of a vocabulary. */
export interface Piece {
  /** The token as text for display: `<s>`, `<0x0A>`, ` the`. */
  readonly text: string;
  /** The bytes that it adds to decoded text: perhaps part of a character; none if it is special. */
  readonly bytes: Uint8Array;
  /** Whether it is a control token, the unknown token or padding, and has no text. */
  readonly special: boolean;
}

/** How the tokens of a vocabulary become text. */
export interface Decoding {
  /**
   * `byte-level`: characters stand for bytes. `sentencepiece`: U+2581 stands for a space, and byte
   * tokens for bytes. `marked`: U+2581 alone. `spaced`: tokens are words, with spaces between them.
   */
  readonly alphabet: 'byte-level' | 'sentencepiece' | 'marked' | 'spaced';
  /**
   * What happens to the first token that has text: nothing, its first space is dropped, or all its
   * marks U+2581 are.
   */
  readonly start: 'keep' | 'drop-space' | 'drop-marks';
}

const utf8 = new TextEncoder();
const nothing = new Uint8Array(0);
const absent: Piece = { text: '', bytes: nothing, special: true };

/** Turns token ids into text, piece by piece. */
export class Pieces {
  /**
   * @param tokens by id; undefined for an id without a token
   * @param types `TokenType` by id
   * @param vocabSize Ids from the number of tokens up to this are padding of the model's vocabulary
   *   and have no text.
   */
  constructor(
    private readonly tokens: readonly (string | undefined)[],
    private readonly types: readonly (number | undefined)[],
    readonly decoding: Decoding,
    private readonly vocabSize = 0,
  ) {}

  /** The number of ids that may have a token. */
  get size(): number {
    return this.tokens.length;
  }

  /** One token. Errors: token_out_of_range. */
  piece(id: number, position = 0): Piece {
    const end = Math.max(this.size, this.vocabSize);
    if (!Number.isInteger(id) || id < 0 || id >= end) {
      const message = `token ${id} at position ${position} is outside the vocabulary of ${end}`;
      throw new KvLensError('token_out_of_range', { position, id, vocabSize: end }, message);
    }
    const token = this.tokens[id];
    if (token === undefined) return absent;
    const type = this.types[id];
    if (type === TokenType.control || type === TokenType.unknown) {
      return { text: token, bytes: nothing, special: true };
    }
    const bytes = this.bytesOf(token, type);
    const isByte = this.decoding.alphabet === 'sentencepiece' && byteOf(token) !== undefined;
    const text = isByte || type === TokenType.userDefined ? token : show(bytes);
    return { text, bytes, special: false };
  }

  /** The name of a control token, which has no text of its own. */
  specialName(id: number): string | undefined {
    const type = this.types[id];
    return type === TokenType.control || type === TokenType.unknown ? this.tokens[id] : undefined;
  }

  /** The names of all control tokens. */
  get specialNames(): string[] {
    return this.tokens.filter((token, id): token is string => {
      return token !== undefined && token !== '' && this.specialName(id) !== undefined;
    });
  }

  private bytesOf(token: string, type: number | undefined): Uint8Array {
    switch (this.decoding.alphabet) {
      case 'byte-level': {
        const bytes = type === TokenType.userDefined ? undefined : bytesOfToken(token);
        return bytes ?? utf8.encode(token);
      }
      case 'sentencepiece': {
        const byte = byteOf(token);
        if (byte !== undefined) return Uint8Array.of(byte);
        return utf8.encode(token.replaceAll('\u2581', ' '));
      }
      case 'marked':
        return utf8.encode(token.replaceAll('\u2581', ' '));
      case 'spaced':
        return utf8.encode(token);
    }
  }

  /** The text of a whole sequence. Errors: token_out_of_range. */
  decode(ids: Iterable<number>): string {
    const decoder = this.decoder();
    let text = '';
    for (const id of ids) text += decoder.push(id);
    return text + decoder.end();
  }

  /** A decoder for the text after the tokens `after`. Errors: token_out_of_range. */
  decoder(after: Iterable<number> = []): StreamDecoder {
    let isStart = true;
    for (const id of after) isStart &&= this.piece(id).bytes.length === 0;
    return new StreamDecoder(this, isStart);
  }
}

/** The byte that a token such as `<0x0A>` stands for. */
function byteOf(token: string): number | undefined {
  const digits = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
  return digits === undefined ? undefined : parseInt(digits, 16);
}

/** Decodes tokens one by one. A character that is not complete yet is held back. */
export class StreamDecoder {
  private readonly utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
  private position = 0;

  constructor(
    private readonly pieces: Pieces,
    private isStart: boolean,
  ) {}

  /** The text that is complete with `id`; often empty. Errors: token_out_of_range. */
  push(id: number): string {
    const { bytes } = this.pieces.piece(id, this.position++);
    if (bytes.length === 0) return '';
    const { alphabet, start } = this.pieces.decoding;
    const isFirst = this.isStart;
    this.isStart = false;
    if (!isFirst) {
      const space = alphabet === 'spaced' ? ' ' : '';
      return space + this.utf8.decode(bytes, { stream: true });
    }
    if (start === 'drop-marks') return this.pieces.piece(id).text.replace(/ |\u2581/g, '');
    const drops = start === 'drop-space' && bytes[0] === 0x20;
    return this.utf8.decode(drops ? bytes.subarray(1) : bytes, { stream: true });
  }

  /** The text that was held back: U+FFFD if the tokens end within a character. */
  end(): string {
    return this.utf8.decode();
  }
}

/** Bytes as text, with incomplete characters as U+FFFD. */
function show(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}

/** The parts that make up a tokenizer of any kind. */
export interface TokenizerParts {
  readonly pieces: Pieces;
  readonly special: SpecialTokens;
  readonly encode: Encode;
}
