/**
 * Counters as they cross the boundary (an array in the order of the core's table) and as objects.
 */
import { KvLensError } from '../errors.js';
import { WORK_COUNTERS, type Work } from '../types.js';

type MutableWork = { -readonly [Counter in keyof Work]: number };

/** Errors: work_overflow, for a counter that a number cannot hold exactly. */
export function workFrom(counters: Float64Array): Work {
  const work = {} as MutableWork;
  WORK_COUNTERS.forEach((name, i) => {
    const value = counters[i]!;
    if (!Number.isSafeInteger(value)) {
      throw new KvLensError(
        'work_overflow',
        {},
        `counter ${name} has passed 2^53 - 1 and cannot be shown exactly`,
      );
    }
    work[name] = value;
  });
  return work;
}

export function workArray(work: Work): Float64Array {
  return Float64Array.from(WORK_COUNTERS, (name) => work[name]);
}

export function zeroWork(): Work {
  return workFrom(new Float64Array(WORK_COUNTERS.length));
}

/** Errors: work_overflow. */
export function addWork(a: Work, b: Work): Work {
  return workFrom(Float64Array.from(WORK_COUNTERS, (name) => a[name] + b[name]));
}
