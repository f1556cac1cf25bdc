/**
 * Arrays move from the worker to the page instead of being copied. Logits and evidence are the
 * larger part of most messages, and everything that the core hands out is already a copy.
 */

/** The memory of every array in `value`, which must not be used by the sender any more. */
export function transferableBuffers(value: unknown): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  collect(value, buffers);
  return [...buffers];
}

function collect(value: unknown, into: Set<ArrayBuffer>): void {
  if (typeof value !== 'object' || value === null) return;
  if (ArrayBuffer.isView(value)) {
    if (value.buffer instanceof ArrayBuffer) into.add(value.buffer);
  } else if (Array.isArray(value)) {
    // A list holds either plain values or objects, never both.
    if (typeof value[0] === 'object') for (const element of value) collect(element, into);
  } else {
    for (const part of Object.values(value)) collect(part, into);
  }
}
