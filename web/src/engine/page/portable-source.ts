/** Turns what a caller gives as a model into what the page sends to the worker. */
import type { FileSource, ModelSource } from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import { isNode, type PortableFile, type PortableSource } from '../protocol/portable-source.js';

function portable(file: FileSource): PortableFile {
  if (typeof file !== 'string' && !(file instanceof URL)) return file;
  const text = String(file);
  if (/^[a-z][a-z0-9+.-]+:/i.test(text)) return { url: text };
  return { url: isNode() ? text : new URL(text, globalThis.location?.href).href };
}

function isFileSource(source: ModelSource): source is FileSource {
  return (
    typeof source === 'string' ||
    source instanceof URL ||
    source instanceof Blob ||
    source instanceof ArrayBuffer ||
    source instanceof Uint8Array
  );
}

/** Errors: invalid_argument. */
export function portableSource(source: ModelSource): PortableSource {
  if (isFileSource(source)) return { kind: 'one', file: portable(source) };
  if (typeof source !== 'object' || source === null) {
    const context = {
      field: 'source',
      value: String(source),
      allowed: 'addresses, files and buffers',
    };
    throw new KvLensError(
      'invalid_argument',
      context,
      `source is ${String(source)}; allowed: ${context.allowed}`,
    );
  }
  const entries = Array.isArray(source)
    ? (source as readonly File[]).map((file) => [file.name, file] as const)
    : Object.entries(source as Readonly<Record<string, FileSource>>);
  return { kind: 'many', files: entries.map(([name, file]) => [name, portable(file)] as const) };
}
