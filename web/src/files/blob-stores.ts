/**
 * The two places where a download cache can keep its files: memory, and the private file system
 * that the browser gives to each origin (OPFS).
 */
import { KvLensError } from '../errors.js';
import type { BlobStore } from './download-cache.js';

/** A store in memory, for tests and for opening a URL twice with one download. */
export function memoryStore(): BlobStore {
  const blobs = new Map<string, Blob>();
  return {
    async get(name) {
      return blobs.get(name);
    },
    async put(name, pieces) {
      blobs.delete(name);
      const parts: BlobPart[] = [];
      for await (const piece of pieces) parts.push(piece.slice());
      blobs.set(name, new Blob(parts));
    },
    async delete(name) {
      blobs.delete(name);
    },
  };
}

/**
 * A store in its own folder of the origin's private file system.
 * Errors: cache_unavailable (not a browser, not a secure context, or storage is blocked).
 */
export async function opfsStore(folder = 'kvlens-downloads'): Promise<BlobStore> {
  let directory: FileSystemDirectoryHandle;
  try {
    const root = await navigator.storage.getDirectory();
    directory = await root.getDirectoryHandle(folder, { create: true });
  } catch (error) {
    const message = 'this environment has no private file system for the download cache';
    throw new KvLensError('cache_unavailable', {}, message, error);
  }
  const remove = async (name: string): Promise<void> => {
    try {
      await directory.removeEntry(name);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  return {
    async get(name) {
      try {
        return await (await directory.getFileHandle(name)).getFile();
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    async put(name, pieces) {
      const handle = await directory.getFileHandle(name, { create: true });
      const writable = await handle.createWritable();
      try {
        for await (const piece of pieces) await writable.write(piece as Uint8Array<ArrayBuffer>);
        await writable.close();
      } catch (error) {
        await writable.abort().catch(() => undefined);
        await remove(name);
        throw error;
      }
    },
    delete: remove,
  };
}

function isNotFound(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'NotFoundError';
}
