/**
 * What a call computed is moved to the page, not cloned: logits and evidence are the larger part of
 * what a message costs.
 */
import type { Evidence, FloatArray, Replay, Step } from '../../types.js';

/**
 * The memory of logits and evidence of a step, a token or a replay, to be transferred; none of
 * anything else.
 */
export function transferableBuffers(value: unknown): ArrayBuffer[] {
  if (typeof value !== 'object' || value === null) return [];
  const { logits, evidence } = value as Partial<Step> | Partial<Replay>;
  const arrays: FloatArray[] = [];
  if (logits !== undefined) arrays.push('data' in logits ? logits.data : logits);
  if (evidence !== undefined) arrays.push(...arraysOf(evidence));
  return arrays.map(({ buffer }) => buffer);
}

/** A copy of its own. */
export function copyOfEvidence(evidence: Evidence): Evidence {
  return withData(evidence, (data) => data.slice());
}

/** Each step's evidence is a little longer than the last one's. */
const ROOM_TO_GROW = 1.25;

/**
 * To keep while the other is moved: in the memory of what was `kept` before, where that suffices,
 * since fresh memory costs several times the copy. What was kept before is then gone.
 */
export function keptEvidence(evidence: Evidence, kept: Evidence | undefined): Evidence {
  const before = kept === undefined ? [] : arraysOf(kept);
  return withData(evidence, (data, i) => {
    const memory = before[i]?.buffer;
    const enough = memory !== undefined && memory.byteLength >= data.byteLength;
    const into = enough
      ? memory
      : new ArrayBuffer(Math.ceil((data.byteLength * ROOM_TO_GROW) / 8) * 8);
    const copy =
      data instanceof Float64Array
        ? new Float64Array(into, 0, data.length)
        : new Float32Array(into, 0, data.length);
    copy.set(data);
    return copy;
  });
}

function arraysOf({ attention, stages }: Evidence): FloatArray[] {
  return [attention.data, ...stages.map(({ data }) => data)];
}

/** With every array replaced by what `replace` makes of it and of its number in `arraysOf`. */
function withData(
  evidence: Evidence,
  replace: (data: FloatArray, i: number) => FloatArray,
): Evidence {
  const { attention, stages } = evidence;
  return {
    ...evidence,
    attention: { ...attention, data: replace(attention.data, 0) },
    stages: stages.map((stage, i) => ({ ...stage, data: replace(stage.data, 1 + i) })),
  };
}
