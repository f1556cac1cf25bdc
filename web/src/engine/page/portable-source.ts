/** Turns what a caller gives as a model into what the page sends to the worker. */
import type { FileSource, ModelSource } from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import type { PortableFile, PortableSource } from '../protocol/portable-source.js';

/** Whether this is Node. A page may have `process` too, as in Electron. */
function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node !== undefined && !('document' in globalThis);
}

function portable(file: FileSource): PortableFile {
  if (typeof file !== 'string' && !(file instanceof URL)) return file;
  const text = String(file);
  const scheme = /^[a-z][a-z0-9+.-]+:/i.exec(text)?.[0];
  if (isNode() && (scheme === undefined || scheme === 'file:')) return { path: text };
  return { url: scheme ? text : new URL(text, globalThis.location?.href).href };
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
