/**
 * Strict JSON: `JSON.parse` silently keeps the last of two equal keys; here they are an error.
 */
import { Fields } from './fields.js';
import { invalid, unsupported } from './file-errors.js';
import type { ByteSource } from './source.js';

/** An object as JSON.parse makes it. */
export type JsonObject = Readonly<Record<string, unknown>>;

const largestJson = 256 << 20; // far above any tokenizer.json

/**
 * Reads a whole file as one JSON object.
 * Errors: invalid_file (not UTF-8, not JSON, not an object, a repeated key), unsupported_file
 * (over 256 MB) and those of the source.
 */
export async function readJson(source: ByteSource, signal?: AbortSignal): Promise<JsonObject> {
  if (source.size > largestJson) {
    throw unsupported(source.name, 'file size', source.size, `JSON of up to ${largestJson} bytes`);
  }
  return parseJson(source.name, 'contents', await source.read(0, source.size, signal));
}

/** Parses `bytes` as one JSON object. Errors: invalid_file. */
export function parseJson(file: string, field: string, bytes: Uint8Array): JsonObject {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (error) {
    throw invalid(file, field, error instanceof Error ? error.message : error, 'UTF-8 JSON');
  }
  if (!isObject(value)) throw invalid(file, field, typeof value, 'a JSON object');
  const twice = repeatedKey(text);
  if (twice !== undefined) throw invalid(file, `key in ${field}`, twice, 'unique');
  return value;
}

/** Whether a JSON value is an object and not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `object[key]` if it is not inherited: a file may contain a key `constructor`. */
export function own<T>(object: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The first key that occurs twice in one object of `text`, which must be valid JSON. */
function repeatedKey(text: string): string | undefined {
  // The keys of each open object; undefined for an array.
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; ++at) {
    const char = text.charAt(at);
    if (char === '{') open.push(new Set());
    else if (char === '[') open.push(undefined);
    else if (char === '}' || char === ']') open.pop();
    else if (char === '"') {
      const begin = at;
      at = endOfString(text, begin);
      const keys = open.at(-1);
      if (keys === undefined || !isKey(text, at + 1)) continue;
      const key = JSON.parse(text.slice(begin, at + 1)) as string;
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}

/** Index of the closing quote of the string that opens at `begin`. */
function endOfString(text: string, begin: number): number {
  let at = begin + 1;
  while (text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at;
}

/** Whether the next character from `at` on is a colon, apart from white space. */
function isKey(text: string, at: number): boolean {
  while (text.charAt(at) <= ' ' && at < text.length) ++at;
  return text.charAt(at) === ':';
}

/** The fields of a JSON object. A field that is null counts as absent. */
export class JsonFields extends Fields {
  constructor(
    file: string,
    private readonly object: JsonObject,
    /** Prefix of field names in messages. */
    private readonly path = '',
  ) {
    super(file);
  }

  override raw(field: string): unknown {
    return own(this.object, field) ?? undefined;
  }

  override name(field: string): string {
    return this.path + field;
  }

  keys(): string[] {
    return Object.keys(this.object);
  }

  /** Whether the object contains the field, even as null. */
  has(field: string): boolean {
    return Object.hasOwn(this.object, field);
  }

  fieldsOf(field: string): JsonFields | undefined {
    const value = this.raw(field);
    if (value === undefined) return undefined;
    if (!isObject(value)) throw this.invalid(field, value, 'an object');
    return new JsonFields(this.file, value, `${this.name(field)}.`);
  }
}
