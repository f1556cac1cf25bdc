/** Two logits, by their bytes and by their values. */
import type { FloatArray } from '../types.js';

export function compareLogits(a: FloatArray, b: FloatArray): { bytesEqual: boolean; maxAbsDifference: number } {
  const aBytes = new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
  const bBytes = new Uint8Array(b.buffer, b.byteOffset, b.byteLength);
  let maxAbsDifference = 0;
  for (let i = 0; i < a.length; ++i) maxAbsDifference = Math.max(maxAbsDifference, Math.abs(a[i]! - b[i]!));
  return {
    bytesEqual: aBytes.length === bBytes.length && aBytes.every((byte, i) => byte === bBytes[i]),
    maxAbsDifference,
  };
}
