/** Opens a model source of the page. Addresses are fetched; paths in Node become blobs. */
import { KvLensError } from '../../errors.js';
import { openHttp } from '../../files/http-source.js';
import type { CheckpointInput, FileData } from '../../files/open-checkpoint.js';
import { blobSource } from '../../files/source.js';
import { isNode, type PortableSource } from '../protocol/portable-source.js';

/** Makes `openCheckpoint`'s input. Errors: missing_file, network_error, aborted. */
export async function openSource(
  source: PortableSource,
  signal: AbortSignal,
): Promise<CheckpointInput> {
  if (source.kind === 'one') {
    const { file } = source;
    if (!('url' in file)) return file;
    const path = pathOf(file.url);
    return path === undefined ? file.url : openPath(path);
  }
  const files: Record<string, FileData> = {};
  for (const [name, file] of source.files) {
    if (!('url' in file)) {
      files[name] = file;
      continue;
    }
    const path = pathOf(file.url);
    const opened =
      path === undefined ? await openHttp(file.url, { signal }) : await openFile(path, name);
    if (opened === undefined)
      throw new KvLensError('missing_file', { name: file.url }, `there is no file at ${file.url}`);
    files[name] = opened;
  }
  return files;
}

/** Returns a path or `file:` URL, or undefined if the address must be fetched. */
function pathOf(url: string): string | URL | undefined {
  if (!isNode()) return undefined;
  if (url.startsWith('file:')) return new URL(url);
  return /^[a-z][a-z0-9+.-]+:/i.test(url) ? undefined : url;
}

// The names of Node's modules are kept out of the imports so that bundlers do not resolve them.
const fsName = 'node:fs';
const pathName = 'node:path';
const urlName = 'node:url';

interface Fs {
  openAsBlob(path: string): Promise<Blob>;
  readonly promises: {
    stat(path: string): Promise<{ isDirectory(): boolean; isFile(): boolean }>;
    readdir(path: string): Promise<string[]>;
  };
}

/** Opens a file and the files beside it that belong to it, or all files of a folder. */
async function openPath(path: string | URL): Promise<CheckpointInput> {
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
  const file = path instanceof URL ? fileURLToPath(path) : path;
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

async function openFile(path: string | URL, name: string): Promise<FileData> {
  const { openAsBlob } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ fsName)) as Fs;
  try {
    return blobSource(await openAsBlob(path as string), name);
  } catch (error) {
    throw new KvLensError(
      'missing_file',
      { name: String(path) },
      `cannot open ${String(path)}`,
      error,
    );
  }
}
