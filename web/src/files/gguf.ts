/**
 * The GGUF container, versions 1 to 3: metadata and tensor table.
 *
 * The header has no length field, so a prefix of the file is read, and a longer one if that is not
 * enough. Only the header is parsed. Every count is checked against the remaining bytes before
 * anything is allocated, so a hostile file costs no more memory than its own size.
 */
import { dtypeByName, dtypeList, ggmlTypeName } from './dtypes.js';
import { Fields } from './fields.js';
import { invalid, unsupported } from './file-errors.js';
import { truncated, type ByteSource } from './source.js';
import { checkTensorTable, tensorBytes, type FileTensor } from './tensor-table.js';

/** A metadata value; 64-bit integers beyond 2^53 stay bigint. */
export type GgufValue = number | bigint | boolean | string | readonly GgufValue[];

/** One GGUF file, without its tensor data. */
export interface GgufFile {
  readonly source: ByteSource;
  readonly version: number;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  /** In file order, shapes row-major. */
  readonly tensors: readonly FileTensor[];
}

const firstWindow = 1 << 20;
const longestHeader = 256 << 20;
const longestKey = 65535; // the limit of the specification
const mostEntries = 65536;
const deepestArray = 4;
const alignments = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/**
 * Reads the header of a GGUF file.
 * Errors: invalid_file, unsupported_file (version, byte order, tensor type), truncated_file and
 * those of the source.
 */
export async function readGguf(source: ByteSource, signal?: AbortSignal): Promise<GgufFile> {
  const reader = new HeaderReader(source);
  /** Parses the next bytes, after reading as much of the file as that takes. */
  const next = async <T>(parse: (reader: HeaderReader) => T): Promise<T> => {
    for (const begin = reader.offset; ; reader.offset = begin) {
      try {
        return parse(reader);
      } catch (error) {
        if (!(error instanceof WindowTooShort)) throw error;
        await reader.widen(signal);
      }
    }
  };
  const { tensorCount, entryCount } = await next(parseStart);
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < entryCount; ++i) {
    const [key, value] = await next(() => parseEntry(reader, i, metadata));
    metadata.set(key, value);
  }
  const alignment = metadata.get('general.alignment') ?? 32;
  if (typeof alignment !== 'number' || !alignments.includes(alignment)) {
    throw invalid(source.name, 'general.alignment', alignment, 'a power of two from 8 to 4096');
  }
  const entries: FileTensor[] = [];
  for (let i = 0; i < tensorCount; ++i)
    entries.push(await next(() => parseTensor(reader, i, alignment)));

  const dataOffset = Math.ceil(reader.offset / alignment) * alignment;
  const tensors = entries.map((entry) => ({ ...entry, byteOffset: dataOffset + entry.byteOffset }));
  checkTensorTable(tensors);
  return { source, version: reader.version, metadata, tensors };
}

/** Not an error of the file: more of it must be read first. */
class WindowTooShort extends Error {}

/** Takes values from the part of a file that has been read so far. */
class HeaderReader {
  readonly file: string;
  offset = 0;
  version = 3;
  private bytes = new Uint8Array(0);
  private view = new DataView(this.bytes.buffer);
  private joined: Uint8Array<ArrayBuffer> | undefined;
  // Tokens may begin with U+FEFF, which must not be taken for a byte order mark.
  private readonly utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  constructor(readonly source: ByteSource) {
    this.file = source.name;
  }

  /**
   * Reads more of the file, up to four times as much as before. Errors: unsupported_file and those
   * of the source.
   */
  async widen(signal: AbortSignal | undefined): Promise<void> {
    const { bytes, source } = this;
    if (bytes.length >= longestHeader) {
      const supported = `up to ${longestHeader} bytes`;
      throw unsupported(this.file, 'header size', `over ${longestHeader}`, supported);
    }
    const grown = new Uint8Array(Math.min(bytes.length * 4 || firstWindow, source.size));
    grown.set(bytes);
    grown.set(await source.read(bytes.length, grown.length - bytes.length, signal), bytes.length);
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
    this.joined = undefined;
  }

  /** Claims the next `length` bytes and returns where they start. */
  take(length: number): number {
    const start = this.offset;
    this.need(length);
    this.offset = start + length;
    return start;
  }

  private need(length: number): void {
    const end = this.offset + length;
    if (end > this.source.size) throw truncated(this.file, end, this.source.size);
    if (end > this.bytes.length) throw new WindowTooShort();
  }

  u32(): number {
    return this.view.getUint32(this.take(4), true);
  }

  u64(): number | bigint {
    const start = this.take(8);
    const high = this.view.getUint32(start + 4, true);
    // Prefer a number: a bigint is an allocation, and a vocabulary has one length per token.
    if (high >= 2 ** 21) return this.view.getBigUint64(start, true);
    return high * 2 ** 32 + this.view.getUint32(start, true);
  }

  /** A count or length: 32 bits in version 1, 64 afterwards. */
  size(): number | bigint {
    return this.version === 1 ? this.u32() : this.u64();
  }

  /** A count of entries that take at least `entryBytes` each. */
  count(field: string, entryBytes: number, limit: number): number {
    const count = this.size();
    if (count > limit) throw invalid(this.file, field, count, `at most ${limit}`);
    const needed = this.offset + Number(count) * entryBytes;
    if (needed > this.source.size) throw truncated(this.file, needed, this.source.size);
    return Number(count);
  }

  string(field: string, limit = longestHeader): string {
    const length = this.count(`length of ${field}`, 1, limit);
    const start = this.take(length);
    try {
      return this.utf8.decode(this.bytes.subarray(start, start + length));
    } catch {
      throw invalid(this.file, field, `not UTF-8 at byte ${start}`, 'UTF-8');
    }
  }

  /**
   * Reads `count` strings and decodes them all at once: one call of the decoder costs as much as
   * dozens of letters, and vocabularies have a hundred thousand tokens.
   */
  strings(field: string, count: number): string[] {
    const { bytes } = this;
    const begin = this.offset;
    // One buffer for all arrays of a file, so that many empty arrays do not cost its size each.
    const joined = (this.joined ??= new Uint8Array(bytes.length));
    const lengths = new Uint32Array(count);
    const what = `length of ${field}`;
    let size = 0;
    let separable = true;
    for (let i = 0; i < count; ++i) {
      const length = this.count(what, 1, longestHeader);
      const start = this.take(length);
      separable &&= length === 0 || !isContinuation(bytes[start]!);
      let units = 0; // UTF-16 units: one per character, two if UTF-8 takes four bytes
      for (let at = start; at < start + length; ++at) {
        const byte = bytes[at]!;
        if (!isContinuation(byte)) units += byte >= 0xf0 ? 2 : 1;
        joined[size++] = byte;
      }
      lengths[i] = units;
    }
    let text: string | undefined;
    try {
      text = separable ? this.utf8.decode(joined.subarray(0, size)) : undefined;
    } catch {
      // One of them is not UTF-8; decoding one by one finds it.
    }
    if (text === undefined) this.offset = begin;
    const result = new Array<string>(count);
    for (let i = 0, at = 0; i < count; ++i) {
      result[i] = text === undefined ? this.string(field) : text.slice(at, (at += lengths[i]!));
    }
    return result;
  }

  value(key: string, type: number, depth = 0): GgufValue {
    const view = this.view;
    switch (type) {
      case 0:
        return view.getUint8(this.take(1));
      case 1:
        return view.getInt8(this.take(1));
      case 2:
        return view.getUint16(this.take(2), true);
      case 3:
        return view.getInt16(this.take(2), true);
      case 4:
        return this.u32();
      case 5:
        return view.getInt32(this.take(4), true);
      case 6:
        return view.getFloat32(this.take(4), true);
      case 7:
        return this.bool(key);
      case 8:
        return this.string(key);
      case 9:
        return this.array(key, depth);
      case 10:
        return this.u64();
      case 11:
        return narrow(view.getBigInt64(this.take(8), true));
      case 12:
        return view.getFloat64(this.take(8), true);
      default:
        throw invalid(this.file, `value type of ${key}`, type, '0 to 12');
    }
  }

  private bool(key: string): boolean {
    const byte = this.view.getUint8(this.take(1));
    if (byte > 1) throw invalid(this.file, key, byte, '0 or 1, being a boolean');
    return byte === 1;
  }

  /** Reads `count` 32-bit integers or floats: a vocabulary has one or two of them per token. */
  private words(type: 5 | 6, count: number): number[] {
    const { view } = this;
    let at = this.take(4 * count);
    const values = new Array<number>(count);
    for (let i = 0; i < count; ++i, at += 4) {
      values[i] = type === 5 ? view.getInt32(at, true) : view.getFloat32(at, true);
    }
    return values;
  }

  private array(key: string, depth: number): GgufValue[] {
    if (depth >= deepestArray) {
      const allowed = `at most ${deepestArray}`;
      throw invalid(this.file, `nesting of ${key}`, `over ${deepestArray}`, allowed);
    }
    const type = this.u32();
    const entryBytes = [1, 1, 2, 2, 4, 4, 4, 1, this.version === 1 ? 4 : 8, 8, 8, 8, 8][type];
    if (entryBytes === undefined) {
      throw invalid(this.file, `element type of ${key}`, type, '0 to 12');
    }
    const count = this.count(`length of ${key}`, entryBytes, longestHeader);
    // Never allocate more entries than the file has bytes for.
    this.need(count * entryBytes);
    if (type === 8) return this.strings(key, count);
    if (type === 5 || type === 6) return this.words(type, count);
    const values: GgufValue[] = [];
    for (let i = 0; i < count; ++i) values.push(this.value(key, type, depth + 1));
    return values;
  }
}

/** Whether a byte of UTF-8 continues a character. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** Parses the part before the metadata. */
function parseStart(reader: HeaderReader): {
  readonly tensorCount: number;
  readonly entryCount: number;
} {
  const { file } = reader;
  const magic = reader.u32();
  if (magic !== 0x46554747) {
    const found = `0x${magic.toString(16).padStart(8, '0')}`;
    throw invalid(file, 'magic', found, '0x46554747 ("GGUF")');
  }
  reader.version = reader.u32();
  if (reader.version < 1 || reader.version > 3) {
    // A big-endian file shows its version in the wrong bytes.
    const found = [1, 2, 3].includes(reader.version >>> 24) ? 'big-endian' : reader.version;
    throw unsupported(file, 'GGUF version', found, '1, 2 and 3, little-endian');
  }
  const smallestTensor = reader.version === 1 ? 24 : 32;
  const smallestEntry = reader.version === 1 ? 9 : 13;
  const tensorCount = reader.count('tensor_count', smallestTensor, mostEntries);
  const entryCount = reader.count('metadata_kv_count', smallestEntry, mostEntries);
  return { tensorCount, entryCount };
}

/** Parses entry `index` of the metadata, whose key must be new. */
function parseEntry(
  reader: HeaderReader,
  index: number,
  before: ReadonlyMap<string, GgufValue>,
): readonly [key: string, value: GgufValue] {
  const { file } = reader;
  const key = reader.string(`metadata key ${index}`, longestKey);
  if (key === '') throw invalid(file, `metadata key ${index}`, key, 'not empty');
  if (before.has(key)) throw invalid(file, 'metadata key', key, 'unique');
  return [key, reader.value(key, reader.u32())];
}

/** Parses one entry of the tensor table. Its offset is from the start of the data. */
function parseTensor(reader: HeaderReader, index: number, alignment: number): FileTensor {
  const { file, source } = reader;
  const name = reader.string(`tensor name ${index}`, longestKey);
  const rank = reader.u32();
  if (rank < 1 || rank > 4) throw invalid(file, `n_dims of ${name}`, rank, '1 to 4');
  const shape: number[] = [];
  for (let i = 0; i < rank; ++i) {
    const dimension = reader.size();
    if (typeof dimension !== 'number' || dimension < 1) {
      throw invalid(file, `dimension ${i} of ${name}`, dimension, 'from 1 to 2^53');
    }
    shape.unshift(dimension); // the file lists the contiguous dimension first
  }
  const type = ggmlTypeName(reader.u32());
  const dtype = dtypeByName(type);
  if (dtype === undefined) throw unsupported(file, `type of ${name}`, type, dtypeList);
  const byteOffset = reader.u64();
  if (typeof byteOffset !== 'number' || byteOffset % alignment !== 0) {
    const allowed = `a multiple of the alignment ${alignment}`;
    throw invalid(file, `offset of ${name}`, byteOffset, allowed);
  }
  const byteLength = tensorBytes(file, name, dtype, shape);
  return { name, dtype, shape, source, byteOffset, byteLength };
}

/** Whether a source begins like a GGUF file. */
export async function isGguf(source: ByteSource, signal?: AbortSignal): Promise<boolean> {
  if (source.size < 4) return false;
  return new TextDecoder('latin1').decode(await source.read(0, 4, signal)) === 'GGUF';
}

/** The metadata of a GGUF file. */
export class GgufMetadata extends Fields {
  constructor(
    file: string,
    private readonly values: ReadonlyMap<string, GgufValue>,
  ) {
    super(file);
  }

  override raw(key: string): GgufValue | undefined {
    return this.values.get(key);
  }

  has(key: string): boolean {
    return this.values.has(key);
  }

  keys(): IterableIterator<string> {
    return this.values.keys() as IterableIterator<string>;
  }

  /**
   * An integer in `[least, most]` that every layer has: one number, or a list with one per layer.
   * Errors: unsupported_file if the layers differ.
   */
  integerPerLayer(
    key: string,
    least: number,
    most: number,
    nLayers: number,
    fallback?: number,
  ): number {
    const list = this.raw(key);
    if (!Array.isArray(list)) return this.integer(key, least, most, fallback);
    const [first] = list as readonly GgufValue[];
    const isInRange = typeof first === 'number' && first >= least && first <= most;
    if (list.length !== nLayers || !isInRange || !Number.isInteger(first)) {
      const allowed = `an integer from ${least} to ${most}, or one for each of ${nLayers} layers`;
      throw this.invalid(key, list, allowed);
    }
    const other = list.findIndex((value) => value !== first);
    if (other < 0) return first;
    throw unsupported(this.file, `${key} of layer ${other}`, list[other], `${first}, as layer 0`);
  }

  strings(key: string): readonly string[] | undefined {
    return this.list(key, 'string') as readonly string[] | undefined;
  }

  numbers(key: string): readonly number[] | undefined {
    return this.list(key, 'number') as readonly number[] | undefined;
  }

  private list(key: string, type: 'string' | 'number'): readonly GgufValue[] | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (!Array.isArray(value) || value.some((entry) => typeof entry !== type)) {
      throw this.invalid(key, value, `an array of ${type}s`);
    }
    return value as readonly GgufValue[];
  }
}
