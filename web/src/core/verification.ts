/** Compares a session's logits with those of a replay, by their bytes and by their values. */
import type { Session } from '../core-api.js';
import type { ComputeType, FloatArray, Replay, Verification } from '../types.js';

/**
 * Begins a verification: takes the logits and the cache's hashes as they are now. Call the result
 * with the replay of the session's tokens. Errors: no_logits.
 */
export function verification<C extends ComputeType>(
  session: Session<C>,
): (replay: Replay<C>) => Verification {
  const logits = session.logits();
  const hashesBefore = session.cache.contentHashes();
  return (replay) => ({
    nTokens: session.kvLen,
    ...compareLogits(logits, replay.logits.data),
    cached: session.lastStep,
    replay: { work: replay.work, milliseconds: replay.milliseconds },
    hashesBefore,
    hashesAfter: session.cache.contentHashes(),
  });
}

function compareLogits(
  a: FloatArray,
  b: FloatArray,
): { bytesEqual: boolean; maxAbsDifference: number } {
  const aBytes = new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
  const bBytes = new Uint8Array(b.buffer, b.byteOffset, b.byteLength);
  let maxAbsDifference = 0;
  for (let i = 0; i < a.length; ++i)
    maxAbsDifference = Math.max(maxAbsDifference, Math.abs(a[i]! - b[i]!));
  return {
    bytesEqual: aBytes.length === bBytes.length && aBytes.every((byte, i) => byte === bBytes[i]),
    maxAbsDifference,
  };
}
