/**
 * Opens a checkpoint from a URL, a dropped file, several files or a buffer.
 */
import { KvLensError } from '../errors.js';
import type { Checkpoint } from './checkpoint.js';
import type { DownloadCache } from './download-cache.js';
import { ggufCheckpoint } from './gguf-checkpoint.js';
import { isGguf } from './gguf.js';
import { hfCheckpoint, safetensorsIndexName, safetensorsName } from './hf-checkpoint.js';
import { openHttp } from './http-source.js';
import { llama2cCheckpoint } from './llama2c.js';
import type { OnProgress } from './progress.js';
import { unsupported } from './file-errors.js';
import {
  baseName,
  blobSource,
  bufferSource,
  openRequired,
  throwIfAborted,
  type ByteSource,
  type OpenByName,
} from './source.js';

/** One file's bytes. */
export type FileData = Blob | ArrayBuffer | Uint8Array | ByteSource;

/**
 * A checkpoint:
 * - a URL (string or URL) of a .gguf, of the first file of a split one, of a .safetensors or its
 *   index, of a llama2.c .bin, or of a folder in Hugging Face's layout (ends in `/`). Other files
 *   are expected beside it;
 * - one file as File, Blob, ArrayBuffer or Uint8Array, if the model needs no other;
 * - several Files, or an object from file name to bytes.
 */
export type CheckpointInput =
  string | URL | FileData | readonly File[] | Readonly<Record<string, FileData>>;

/** Options of `openCheckpoint`. */
export interface OpenOptions {
  readonly signal?: AbortSignal;
  /** Used for URLs instead of the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Keeps downloads; see `DownloadCache`. */
  readonly cache?: DownloadCache;
  /** Called during downloads into the cache. */
  readonly onProgress?: OnProgress;
}

/**
 * Describes and checks a checkpoint. No weight is read.
 * Errors: invalid_argument (no or several models among the files), invalid_file, unsupported_file,
 * truncated_file, missing_file, network_error, aborted.
 */
export async function openCheckpoint(
  input: CheckpointInput,
  options: OpenOptions = {},
): Promise<Checkpoint> {
  throwIfAborted(options.signal);
  const { main, open, tokenizerBin } =
    typeof input === 'string' || input instanceof URL
      ? await atUrl(input, options)
      : amongFiles(input);
  const { signal } = options;
  switch (await formatOf(main, signal)) {
    case 'gguf':
      return ggufCheckpoint(main, open, signal);
    case 'safetensors':
      return hfCheckpoint(main, open, signal);
    case 'llama2c':
      return llama2cCheckpoint(main, await tokenizerBin(), signal);
  }
}

interface Located {
  readonly main: ByteSource;
  readonly open: OpenByName;
  /** Opens llama2.c's tokenizer, which has no fixed name. */
  readonly tokenizerBin: () => Promise<ByteSource | undefined>;
}

async function atUrl(input: string | URL, options: OpenOptions): Promise<Located> {
  const base = globalThis.location?.href;
  let url: URL;
  try {
    url = new URL(input, base);
  } catch (error) {
    const context = { field: 'url', value: String(input), allowed: 'an absolute URL' };
    const message = `url is ${JSON.stringify(String(input))}, must be an absolute URL`;
    throw new KvLensError('invalid_argument', context, message, error);
  }
  const { cache } = options;
  const openUrl = (at: URL) => (cache ? cache.open(at, options) : openHttp(at, options));
  const open: OpenByName = (name) => {
    const sibling = new URL(encodeURIComponent(name), url);
    sibling.search = url.search; // a query such as an access token holds for the whole folder
    return openUrl(sibling);
  };
  const main = url.pathname.endsWith('/')
    ? ((await open(safetensorsName)) ?? (await openRequired(open, safetensorsIndexName)))
    : await openUrl(url);
  if (main === undefined) {
    const message = `there is no file at ${url.href}`;
    throw new KvLensError('missing_file', { name: url.href }, message);
  }
  return { main, open, tokenizerBin: () => open('tokenizer.bin') };
}

function amongFiles(input: Exclude<CheckpointInput, string | URL>): Located {
  if (isFileData(input)) {
    const none: OpenByName = async () => undefined;
    return { main: toSource(input), open: none, tokenizerBin: async () => undefined };
  }
  const files = new Map<string, ByteSource>();
  const add = (name: string, data: FileData) => {
    if (files.has(name)) throw wrongFiles(name, 'every file name once');
    files.set(name, toSource(data, name));
  };
  if (Array.isArray(input)) for (const file of input as readonly File[]) add(file.name, file);
  else for (const [name, data] of Object.entries(input)) add(name, data);

  const names = [...files.keys()];
  const isTokenizer = (name: string) => /tok[^/]*\.bin$/i.test(name);
  const ends = (ending: string) => names.filter((name) => name.toLowerCase().endsWith(ending));
  const models = [
    ends('.gguf').filter((name) => !/-(?!00001)\d{5}-of-\d{5}\.gguf$/i.test(name)),
    ends('.safetensors.index.json'),
    ends('.safetensors'),
    ends('.bin').filter((name) => !isTokenizer(name)),
    names.length === 1 ? names : [], // whatever its name, its content may show the format
  ].find((list) => list.length > 0);
  const [name, second] = models ?? [];
  const main = name === undefined ? undefined : files.get(name);
  const allowed = 'one model: .gguf, .safetensors or its index, or .bin';
  if (main === undefined) throw wrongFiles(names.join(', ') || 'none', allowed);
  if (second !== undefined) throw wrongFiles(`${name}, ${second}`, allowed);
  const tokenizerName = names.find(isTokenizer);
  return {
    main,
    open: async (wanted) => files.get(wanted),
    tokenizerBin: async () => (tokenizerName === undefined ? undefined : files.get(tokenizerName)),
  };
}

function isFileData(input: Exclude<CheckpointInput, string | URL>): input is FileData {
  return (
    input instanceof Blob ||
    input instanceof ArrayBuffer ||
    input instanceof Uint8Array ||
    ('stream' in input && typeof input.stream === 'function')
  );
}

function toSource(data: FileData, name?: string): ByteSource {
  if (data instanceof Blob) return blobSource(data, name);
  if (data instanceof ArrayBuffer || data instanceof Uint8Array) return bufferSource(data, name);
  return data;
}

function wrongFiles(value: string, allowed: string): KvLensError {
  const message = `files are ${value}, must be ${allowed}`;
  return new KvLensError('invalid_argument', { field: 'files', value, allowed }, message);
}

/** The format by name, or by content if the name does not show it. */
async function formatOf(
  source: ByteSource,
  signal: AbortSignal | undefined,
): Promise<'gguf' | 'safetensors' | 'llama2c'> {
  const name = baseName(source.name).toLowerCase();
  if (name.endsWith('.gguf') || (await isGguf(source, signal))) return 'gguf';
  if (/\.safetensors(\.index\.json)?$/.test(name)) return 'safetensors';
  if (name.endsWith('.bin')) return 'llama2c';
  if (source.size > 9) {
    const start = await source.read(0, 9, signal);
    if (start[8] === 0x7b) return 'safetensors'; // the "{" after the header's length
  }
  throw unsupported(source.name, 'format', 'unknown', 'GGUF, safetensors and llama2.c (.bin)');
}
