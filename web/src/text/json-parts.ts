/** Checked access to the parts of a tokenizer.json. Errors of all functions: invalid_tokenizer. */
import { invalidTokenizer } from './tokenizer-errors.js';

export type Json = Readonly<Record<string, unknown>>;

/** Whether a JSON value is an object and not an array. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `value` as an object; `name` is its name in messages. */
export function asObject(value: unknown, name: string): Json {
  if (isObject(value)) return value;
  throw invalidTokenizer(name, kindOf(value), 'an object');
}

/** The field `field`, which must be a string. */
export function string(json: Json, field: string): string {
  const value = json[field];
  if (typeof value === 'string') return value;
  throw invalidTokenizer(field, kindOf(value), 'a string');
}

/** The field `field`, or `fallback` if it is null or absent. */
export function boolean(json: Json, field: string, fallback: boolean): boolean {
  const value = json[field] ?? fallback;
  if (typeof value === 'boolean') return value;
  throw invalidTokenizer(field, kindOf(value), 'true or false');
}

/** The field `field`, which must be a list. */
export function listOf(json: Json, field: string): readonly unknown[] {
  const value = json[field];
  if (Array.isArray(value)) return value as readonly unknown[];
  throw invalidTokenizer(field, kindOf(value), 'a list');
}

function kindOf(value: unknown): unknown {
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'an object' : value;
}
