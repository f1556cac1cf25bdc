/**
 * Bytes that can be read anywhere: a file, a blob, a buffer, a URL.
 *
 * Every reader of a format works on a `ByteSource` alone. A source never returns fewer bytes than
 * it was asked for: a range outside `[0, size)` and an underlying file that ends early are both
 * `truncated_file`.
 */
import { KvLensError } from '../errors.js';

/** Random access to `size` bytes. */
export interface ByteSource {
  /** What messages call it: a file name or a URL. */
  readonly name: string;
  /** Length in bytes. */
  readonly size: number;
  /**
   * The `length` bytes at `offset`, as a view the caller may keep.
   * Errors: truncated_file, network_error, aborted.
   */
  read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array>;
  /**
   * The same bytes in order, in pieces of the source's own size; nothing is held beyond one piece,
   * which is valid until the next is asked for. Errors: truncated_file, network_error, aborted.
   */
  stream(offset: number, length: number, signal?: AbortSignal): AsyncIterable<Uint8Array>;
}

/** Finds a file that lies beside another by name; undefined where there is none. */
export type OpenByName = (name: string) => Promise<ByteSource | undefined>;

/** The file of that name. Errors: missing_file and those of `open`. */
export async function openRequired(open: OpenByName, name: string): Promise<ByteSource> {
  const source = await open(name);
  if (source === undefined) {
    throw new KvLensError('missing_file', { name }, `the checkpoint has no ${name}`);
  }
  return source;
}

/**
 * The last part of a path, or of an address without its query. Only addresses are decoded: a file's
 * own name may have `%`, `#` and `?` in it.
 */
export function baseName(name: string): string {
  if (!/^[a-z][a-z0-9+.-]+:/i.test(name)) return lastPart(name);
  const last = lastPart(name.replace(/[?#].*$/, ''));
  try {
    return decodeURIComponent(last);
  } catch {
    return last; // a "%" that encodes nothing
  }
}

function lastPart(path: string): string {
  return path.split(/[/\\]/).filter(Boolean).at(-1) ?? '';
}

/** Throws `aborted` once `signal` has fired. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new KvLensError('aborted', {}, 'aborted', signal.reason);
}

/** `truncated_file`: `name` has `size` bytes, and `needed` were called for. */
export function truncated(name: string, needed: number, size: number): KvLensError {
  return new KvLensError(
    'truncated_file',
    { file: name, needed, size },
    `${name} has ${size} bytes, but ${needed} are needed`,
  );
}

/** Throws `truncated_file` unless `[offset, offset + length)` lies in the source. */
export function checkRange(source: ByteSource, offset: number, length: number): void {
  if (offset + length > source.size) throw truncated(source.name, offset + length, source.size);
}

/** A source over bytes in memory; the bytes are not copied. */
export function bufferSource(data: ArrayBuffer | Uint8Array, name = 'buffer'): ByteSource {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const source: ByteSource = {
    name,
    size: bytes.byteLength,
    async read(offset, length, signal) {
      throwIfAborted(signal);
      checkRange(source, offset, length);
      return bytes.subarray(offset, offset + length);
    },
    async *stream(offset, length, signal) {
      yield* readInPieces(source, offset, length, signal);
    },
  };
  return source;
}

/** A source over a File or Blob. */
export function blobSource(blob: Blob, name = nameOf(blob)): ByteSource {
  // A File is a reference: the file behind it can be moved, changed or deleted.
  const readable = async <T>(offset: number, read: () => Promise<T>): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      throw new KvLensError(
        'invalid_file',
        { file: name, field: 'contents', value: 'unreadable', allowed: 'an unchanged file' },
        `${name} can no longer be read at byte ${offset}`,
        error,
      );
    }
  };
  const source: ByteSource = {
    name,
    size: blob.size,
    async read(offset, length, signal) {
      throwIfAborted(signal);
      checkRange(source, offset, length);
      const slice = blob.slice(offset, offset + length);
      const bytes = new Uint8Array(await readable(offset, () => slice.arrayBuffer()));
      throwIfAborted(signal);
      if (bytes.byteLength !== length) {
        throw truncated(name, offset + length, offset + bytes.byteLength);
      }
      return bytes;
    },
    // A stream's pieces are read on while one is being used, and cost less than slices of a few
    // megabytes.
    async *stream(offset, length, signal) {
      checkRange(source, offset, length);
      const reader = pieceReader(
        blob.slice(offset, offset + length).stream(),
        Math.min(length, streamBytes),
      );
      try {
        for (let at = offset; at < offset + length;) {
          throwIfAborted(signal);
          const piece = await readable(at, () => within(streamPatience, reader.read()));
          throwIfAborted(signal);
          if (piece === late) {
            yield* readInPieces(source, at, offset + length - at, signal);
            return;
          }
          if (piece === undefined) throw truncated(name, offset + length, at);
          at += piece.byteLength;
          yield piece;
        }
      } finally {
        // A stream that failed refuses to be cancelled, with the error that was thrown already.
        reader.cancel().catch(() => undefined);
      }
    },
  };
  return source;
}

const streamBytes = 2 << 20;

/**
 * Milliseconds that a piece may take to come. Streams of blobs in Chromium 156 sometimes stop for
 * ever when what is done between two reads takes a while (one load in thirty of a model); slices
 * never did. A disk that is merely slow loses nothing by being read in slices.
 */
const streamPatience = 500;
const late = Symbol('late');

/** What `promise` gives, or `late` when that takes more than `milliseconds`. */
async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T | typeof late> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<typeof late>((resolve) => {
    timer = setTimeout(() => resolve(late), milliseconds);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Reads into one buffer over and over where the stream can (every engine's blobs do): fresh memory
 * for each piece costs as much as the copy. Undefined at the end; a piece is gone when the next is
 * read.
 */
function pieceReader(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytes: number,
): { read(): Promise<Uint8Array | undefined>; cancel(): Promise<void> } {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = stream.getReader({ mode: 'byob' });
  } catch {
    // Not a stream of bytes.
    const plain = stream.getReader();
    return { read: async () => (await plain.read()).value, cancel: () => plain.cancel() };
  }
  let buffer = new ArrayBuffer(bytes);
  return {
    async read() {
      const { value, done } = await reader.read(new Uint8Array(buffer));
      if (done || value === undefined) return undefined;
      buffer = value.buffer;
      return value;
    },
    cancel: () => reader.cancel(),
  };
}

// Large enough that the per-call cost vanishes, small enough that one piece is no memory to speak
// of.
const pieceBytes = 4 << 20;

async function* readInPieces(
  source: ByteSource,
  offset: number,
  length: number,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> {
  checkRange(source, offset, length);
  for (let done = 0; done < length; done += pieceBytes) {
    yield await source.read(offset + done, Math.min(pieceBytes, length - done), signal);
  }
}

function nameOf(blob: Blob): string {
  return 'name' in blob && typeof blob.name === 'string' && blob.name !== '' ? blob.name : 'blob';
}
