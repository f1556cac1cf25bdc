/** Errors of tokenizers: one sentence with the field, the value found and what is allowed. */
import { KvLensError } from '../errors.js';

/** The parts of the tokenizer contradict each other or do not describe a tokenizer. */
export function invalidTokenizer(
  field: string,
  value: unknown,
  allowed: string,
): KvLensError<'invalid_tokenizer'> {
  const message = `${field} is ${show(value)}, must be ${allowed}`;
  return new KvLensError('invalid_tokenizer', { field, value: String(value), allowed }, message);
}

/** The tokenizer uses a component that kvlens does not support. */
export function unsupportedTokenizer(
  field: string,
  value: unknown,
  allowed: string,
  cause?: unknown,
): KvLensError<'unsupported_tokenizer'> {
  const context = { field, value: String(value), allowed };
  const message = `${field} is ${show(value)}, supported: ${allowed}`;
  return new KvLensError('unsupported_tokenizer', context, message, cause);
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
