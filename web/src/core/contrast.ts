/** Compares two schedules; the core checks their counters against the formula. */
import type { Config, Contrast, Schedule } from '../types.js';
import * as check from './arguments.js';
import { unwrap, type Instance } from './instance.js';
import { workArray } from './work.js';

export function contrastOf(
  instance: Instance,
  config: Config,
  cached: Schedule,
  replay: Schedule,
): Contrast {
  const lengths = ({ prefixLengths }: Schedule, field: string): Uint32Array =>
    Uint32Array.from(prefixLengths, (length, i) =>
      check.count(`${field}.prefixLengths[${i}]`, length),
    );
  return instance.call((module) =>
    unwrap(
      module.contrast(
        check.config(config),
        lengths(cached, 'cached'),
        workArray(cached.work),
        lengths(replay, 'replay'),
        workArray(replay.work),
      ),
    ),
  );
}
