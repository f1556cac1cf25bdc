/**
 * Sources of bytes: a file, a blob, a buffer, a URL.
 *
 * Every format reader works on a `ByteSource`. A source never returns fewer bytes than requested: a
 * range outside `[0, size)` and an underlying file that ends early are both `truncated_file`.
 */
import { KvLensError } from '../errors.js';

/** Random access to `size` bytes. */
export interface ByteSource {
  /** The name used in messages: a file name or a URL. */
  readonly name: string;
  /** Length in bytes. */
  readonly size: number;
  /**
   * Reads `length` bytes at `offset`. The caller may keep the result.
   * Errors: truncated_file, network_error, aborted.
   */
  read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array>;
  /**
   * Yields the same bytes in order, in pieces whose size the source chooses. Only one piece is held
   * at a time; it is valid until the next is requested. Errors: truncated_file, network_error,
   * aborted.
   */
  stream(offset: number, length: number, signal?: AbortSignal): AsyncIterable<Uint8Array>;
}

/** Opens the file of that name beside another one. Undefined if there is none. */
export type OpenByName = (name: string) => Promise<ByteSource | undefined>;

/** Opens the file of that name. Errors: missing_file and those of `open`. */
export async function openRequired(open: OpenByName, name: string): Promise<ByteSource> {
  const source = await open(name);
  if (source === undefined) {
    throw new KvLensError('missing_file', { name }, `the checkpoint has no ${name}`);
  }
  return source;
}

/**
 * The last part of a path, or of a URL without its query. Only URLs are decoded: a file name may
 * contain `%`, `#` and `?`.
 */
export function baseName(name: string): string {
  if (!/^[a-z][a-z0-9+.-]+:/i.test(name)) return lastPart(name);
  const last = lastPart(name.replace(/[?#].*$/, ''));
  try {
    return decodeURIComponent(last);
  } catch {
    return last; // the "%" does not begin an escape
  }
}

function lastPart(path: string): string {
  return path.split(/[/\\]/).filter(Boolean).at(-1) ?? '';
}

/** Throws `aborted` once `signal` has fired. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new KvLensError('aborted', {}, 'aborted', signal.reason);
}

/** `truncated_file`: `name` has `size` bytes, and `needed` are required. */
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
  // A File is a reference: the file on disk can be moved, changed or deleted.
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
    // A stream reads ahead while a piece is in use, and its pieces cost less than slices of a few
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
        // Cancelling a failed stream rejects with the error that was already thrown.
        reader.cancel().catch(() => undefined);
      }
    },
  };
  return source;
}

const streamBytes = 2 << 20;

/**
 * Milliseconds to wait for a piece. Blob streams in Chromium 156 sometimes stall forever when the
 * work between two reads takes a while (one model load in thirty); slices never did. A slow disk
 * loses nothing by being read in slices.
 */
const streamPatience = 500;
const late = Symbol('late');

/** Resolves like `promise`, or to `late` if that takes more than `milliseconds`. */
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
 * Reads into one buffer again and again if the stream supports it (blobs do in every engine): new
 * memory for each piece costs as much as the copy. A piece is valid until the next one is read. The
 * result is undefined at the end.
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

// Large enough to hide the cost per call, small enough to need little memory.
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
