/**
 * Errors of files: one sentence with the field, the value found and what is allowed.
 */
import { KvLensError } from '../errors.js';

/** The file contradicts its own format. */
export function invalid(file: string, field: string, value: unknown, allowed: string): KvLensError {
  const shown = show(value);
  return new KvLensError(
    'invalid_file',
    { file, field, value: shown, allowed },
    `${file}: ${field} is ${shown}, must be ${allowed}`,
  );
}

/** The file is well formed, but asks for something that kvlens does not do. */
export function unsupported(
  file: string,
  field: string,
  value: unknown,
  supported: string,
): KvLensError {
  const shown = show(value);
  return new KvLensError(
    'unsupported_file',
    { file, field, value: shown, allowed: supported },
    `${file}: ${field} is ${shown}, supported: ${supported}`,
  );
}

const longestShown = 120; // characters
const mostShown = 8; // entries of a list

/** A value as messages show it. Long values are cut, so that a hostile file cannot flood them. */
export function show(value: unknown): string {
  let text: string;
  if (value === undefined) text = 'absent';
  else if (typeof value === 'string') text = JSON.stringify(value);
  else if (Array.isArray(value)) text = showList(value);
  else if (typeof value === 'object' && value !== null) text = JSON.stringify(value) ?? 'an object';
  else text = String(value);
  return text.length > longestShown ? `${text.slice(0, longestShown)}...` : text;
}

function showList(values: readonly unknown[]): string {
  const entries = values.slice(0, mostShown).map(show);
  if (values.length > mostShown) entries.push('...');
  return `[${entries.join(', ')}]`;
}
