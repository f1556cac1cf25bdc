/**
 * The hash that identifies a model: its configuration, and name, storage type and bytes of each
 * parameter.
 */
import type { Config, ParameterInfo } from '../types.js';

const MASK = (1n << 64n) - 1n;

export function hex64(hash: bigint): string {
  return hash.toString(16).padStart(16, '0');
}

/** FNV-1a of a text's UTF-8. */
function textHash(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text))
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & MASK;
  return hash;
}

/** `contentHashes` maps each name to the hash of the bytes that the caller gave. */
export function modelHash(
  config: Config,
  parameters: readonly ParameterInfo[],
  contentHashes: ReadonlyMap<string, bigint>,
): string {
  const { rope, ...dimensions } = config;
  const lines = [...Object.entries(dimensions), ...Object.entries(rope)].map(
    ([key, value]) => `${key}=${value}`,
  );
  lines.sort();
  for (const { name, dtype, shape } of parameters) {
    lines.push(`${name} ${dtype} ${shape.join('x')} ${hex64(contentHashes.get(name) ?? 0n)}`);
  }
  return hex64(textHash(lines.join('\n')));
}
