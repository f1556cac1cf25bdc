/**
 * Keeps downloads between visits.
 *
 * There is one entry per URL: the bytes, and a record of the ETag, the length and one SHA-256 per
 * 4 MB. The record is written last, so an interrupted download leaves no entry. An entry is used
 * only if the server still has the same ETag and every hash agrees. Otherwise it is dropped and
 * fetched again. A resource without an ETag is not cached, because a change would go unnoticed.
 */
import { KvLensError } from '../errors.js';
import { isObject } from './json.js';
import { openHttp, type HttpOptions, type HttpSource } from './http-source.js';
import type { OnProgress } from './progress.js';
import { blobSource, type ByteSource } from './source.js';

/** Where the cache keeps its files. */
export interface BlobStore {
  /** The blob of that name, or undefined if there is none. */
  get(name: string): Promise<Blob | undefined>;
  /** Replaces the blob of that name. After an error there is no blob of that name. */
  put(name: string, pieces: AsyncIterable<Uint8Array>): Promise<void>;
  /** Deletes the blob of that name, if there is one. */
  delete(name: string): Promise<void>;
}

/** Options of a download. */
export interface DownloadOptions extends HttpOptions {
  readonly onProgress?: OnProgress;
}

interface Entry {
  readonly url: string;
  readonly etag: string;
  readonly size: number;
  /** SHA-256 of each 4 MB, in hex. */
  readonly hashes: readonly string[];
}

const chunkBytes = 4 << 20;

/** Opens URLs through a store. */
export class DownloadCache {
  constructor(private readonly store: BlobStore) {}

  /**
   * The resource at `url`. It comes from the store if the store has an intact copy; otherwise it is
   * downloaded into the store first. The result is undefined if the server answers 404 or 410.
   * Errors: network_error, truncated_file, aborted, cache_unavailable (no room). After an error the
   * store holds either no entry for the URL or the previous one.
   */
  async open(url: string | URL, options: DownloadOptions = {}): Promise<ByteSource | undefined> {
    const remote = await openHttp(url, options);
    if (remote?.etag === undefined) return remote;
    const key = await sha256(new TextEncoder().encode(String(url)));
    const kept = await this.verified(key, remote, options);
    if (kept !== undefined) {
      remote.close();
      return kept;
    }
    await this.remove(key);
    await this.download(key, remote, remote.etag, options);
    const blob = await this.store.get(dataName(key));
    if (blob === undefined || blob.size !== remote.size) return remote; // deleted by another tab
    remote.close();
    return blobSource(blob, remote.name);
  }

  /** Deletes the entry of `url`. */
  async delete(url: string | URL): Promise<void> {
    await this.remove(await sha256(new TextEncoder().encode(String(url))));
  }

  private async remove(key: string): Promise<void> {
    await this.store.delete(recordName(key));
    await this.store.delete(dataName(key));
  }

  private async verified(
    key: string,
    remote: HttpSource,
    options: DownloadOptions,
  ): Promise<ByteSource | undefined> {
    const record = await this.store.get(recordName(key));
    const data = await this.store.get(dataName(key));
    if (record === undefined || data === undefined) return undefined;
    const entry = parseEntry(await record.text());
    if (entry === undefined || entry.url !== remote.name || entry.etag !== remote.etag) {
      return undefined;
    }
    if (entry.size !== remote.size || entry.size !== data.size) return undefined;
    const source = blobSource(data, remote.name);
    for (let i = 0; i * chunkBytes < entry.size; ++i) {
      const length = Math.min(chunkBytes, entry.size - i * chunkBytes);
      const chunk = await source.read(i * chunkBytes, length, options.signal);
      if ((await sha256(chunk)) !== entry.hashes[i]) return undefined;
      const bytes = i * chunkBytes + length;
      options.onProgress?.({ stage: 'verify', bytes, total: entry.size });
    }
    return source;
  }

  private async download(
    key: string,
    remote: HttpSource,
    etag: string,
    options: DownloadOptions,
  ): Promise<void> {
    const hashes: string[] = [];
    async function* hashed(): AsyncIterable<Uint8Array> {
      let chunk = new Uint8Array(Math.min(chunkBytes, remote.size));
      let filled = 0;
      let bytes = 0;
      for await (const piece of remote.stream(0, remote.size, options.signal)) {
        for (let taken = 0; taken < piece.byteLength;) {
          const part = piece.subarray(taken, taken + chunk.byteLength - filled);
          chunk.set(part, filled);
          filled += part.byteLength;
          taken += part.byteLength;
          bytes += part.byteLength;
          if (filled < chunk.byteLength) continue;
          hashes.push(await sha256(chunk));
          yield chunk;
          chunk = new Uint8Array(Math.min(chunkBytes, remote.size - bytes));
          filled = 0;
        }
        options.onProgress?.({ stage: 'download', bytes, total: remote.size });
      }
    }
    try {
      await this.store.put(dataName(key), hashed());
      const entry: Entry = { url: remote.name, etag, size: remote.size, hashes };
      const text = new TextEncoder().encode(JSON.stringify(entry));
      await this.store.put(recordName(key), once(text));
    } catch (error) {
      if (error instanceof KvLensError) throw error;
      const message = `the download cache cannot keep the ${remote.size} bytes of ${remote.name}`;
      throw new KvLensError('cache_unavailable', {}, message, error);
    }
  }
}

function dataName(key: string): string {
  return `${key}.data`;
}

function recordName(key: string): string {
  return `${key}.json`;
}

function parseEntry(text: string): Entry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { url, etag, size, hashes } = value;
  const whole =
    typeof url === 'string' &&
    typeof etag === 'string' &&
    typeof size === 'number' &&
    Array.isArray(hashes) &&
    hashes.every((hash) => typeof hash === 'string');
  return whole ? { url, etag, size, hashes: hashes as string[] } : undefined;
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

async function sha256(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
