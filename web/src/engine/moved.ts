/**
 * What a call computed is moved to the page, not cloned: logits and evidence are the larger part of what a message
 * costs.
 */
import type { Evidence, FloatArray, Replay, Step } from '../types.js';

/** The memory of logits and evidence of a step, a token or a replay, to be transferred; none of anything else. */
export function movedBuffers(value: unknown): ArrayBuffer[] {
  if (typeof value !== 'object' || value === null) return [];
  const { logits, evidence } = value as Partial<Step> | Partial<Replay>;
  const arrays: FloatArray[] = [];
  if (logits !== undefined) arrays.push('data' in logits ? logits.data : logits);
  if (evidence !== undefined) arrays.push(evidence.attention.data, ...evidence.stages.map(({ data }) => data));
  return arrays.map(({ buffer }) => buffer);
}

/** To keep while the other is moved. */
export function copyOfEvidence(evidence: Evidence): Evidence {
  const { attention, stages } = evidence;
  return {
    ...evidence,
    attention: { ...attention, data: attention.data.slice() },
    stages: stages.map((stage) => ({ ...stage, data: stage.data.slice() })),
  };
}
