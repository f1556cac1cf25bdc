/** Opens a model source of the page. Addresses are fetched; paths in Node become blobs. */
import { KvLensError } from '../../errors.js';
import { openHttp } from '../../files/http-source.js';
import type { CheckpointInput, FileData } from '../../files/open-checkpoint.js';
import { blobSource } from '../../files/source.js';
import type { PortableSource } from '../protocol/portable-source.js';

/** Makes `openCheckpoint`'s input. Errors: missing_file, network_error, aborted. */
export async function openSource(
  source: PortableSource,
  signal: AbortSignal,
): Promise<CheckpointInput> {
  if (source.kind === 'one') {
    const { file } = source;
    if ('path' in file) return openPath(file.path);
    return 'url' in file ? file.url : file;
  }
  const files: Record<string, FileData> = {};
  for (const [name, file] of source.files) {
    if ('path' in file) {
      files[name] = await openFile(locationOf(file.path), name);
    } else if ('url' in file) {
      const opened = await openHttp(file.url, { signal });
      if (opened === undefined) {
        const message = `there is no file at ${file.url}`;
        throw new KvLensError('missing_file', { name: file.url }, message);
      }
      files[name] = opened;
    } else {
      files[name] = file;
    }
  }
  return files;
}

/** A path as it is, a `file:` address as a URL. */
function locationOf(path: string): string | URL {
  return path.startsWith('file:') ? new URL(path) : path;
}

/** Node gives a longer file's Blob a wrong size; and no module can hold its weights. */
const MAX_BLOB_BYTES = 2 ** 32 - 1;

// The names of Node's modules are kept out of the imports so that bundlers do not resolve them.
const fsName = 'node:fs';
const pathName = 'node:path';
const urlName = 'node:url';

interface Fs {
  openAsBlob(path: string | URL): Promise<Blob>;
  readonly promises: {
    stat(
      path: string | URL,
    ): Promise<{ readonly size: number; isDirectory(): boolean; isFile(): boolean }>;
    readdir(path: string): Promise<string[]>;
  };
}

/** Opens a file and the files beside it that belong to it, or all files of a folder. */
async function openPath(path: string): Promise<CheckpointInput> {
  const { promises } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ fsName)) as Fs;
  const { basename, dirname, join } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ pathName
  )) as {
    basename(path: string): string;
    dirname(path: string): string;
    join(...parts: string[]): string;
  };
  const { fileURLToPath } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ urlName
  )) as {
    fileURLToPath(url: URL): string;
  };
  const location = locationOf(path);
  const file = location instanceof URL ? fileURLToPath(location) : location;
  const isFolder = await promises.stat(file).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const folder = isFolder ? file : dirname(file);
  const name = basename(file);
  const split = /^(.*)-\d{5}-of-(\d{5})\.gguf$/.exec(name);
  const belongs = (other: string): boolean => {
    if (isFolder || other === name) return true;
    if (split) return other.startsWith(`${split[1]}-`) && other.endsWith(`-of-${split[2]}.gguf`);
    if (/\.safetensors(\.index\.json)?$/.test(name)) {
      return (
        (/\.(json|jinja)$/.test(other) && !other.endsWith('.index.json')) ||
        (name.endsWith('.index.json') && other.endsWith('.safetensors'))
      );
    }
    return name.endsWith('.bin') && /^tok[^/]*\.bin$/i.test(other);
  };
  const names = (await promises.readdir(folder).catch(() => [])).filter(belongs);
  const files: Record<string, FileData> = {};
  for (const found of names) {
    const at = join(folder, found);
    if ((await promises.stat(at)).isFile()) files[found] = await openFile(at, found);
  }
  if (!isFolder && !(name in files))
    throw new KvLensError('missing_file', { name: file }, `there is no file at ${file}`);
  return files;
}

/** Errors: missing_file, model_too_large. */
async function openFile(path: string | URL, name: string): Promise<FileData> {
  const { openAsBlob, promises } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ fsName
  )) as Fs;
  try {
    const { size } = await promises.stat(path);
    if (size <= MAX_BLOB_BYTES) return blobSource(await openAsBlob(path), name);
    const message = `${String(path)} has ${size} bytes; at most ${MAX_BLOB_BYTES} can be loaded`;
    throw new KvLensError('model_too_large', { value: size, limit: MAX_BLOB_BYTES }, message);
  } catch (error) {
    if (error instanceof KvLensError) throw error;
    const message = `cannot open ${String(path)}`;
    throw new KvLensError('missing_file', { name: String(path) }, message, error);
  }
}
