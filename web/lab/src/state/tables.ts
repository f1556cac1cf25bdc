// The page's tables as CSV.
import { WORK_COUNTERS } from 'kvlens';
import { csv } from '../figures/index.js';
import type { Trace } from './trace.js';

/** One line per call: what it did, and every counter of its work. */
export function callsCsv({ calls }: Trace): string {
  const head = [
    'call',
    'phase',
    'how',
    'tokens',
    'position',
    'kvLenBefore',
    'kvLen',
    'milliseconds',
    ...WORK_COUNTERS,
  ];
  return csv([
    head,
    ...calls.map(({ step, tokens, how }, index) => [
      index,
      step.phase,
      how,
      tokens.join(' '),
      step.position,
      step.kvLenBefore,
      step.kvLen,
      step.milliseconds,
      ...WORK_COUNTERS.map((counter) => step.work[counter]),
    ]),
  ]);
}

/** One line per row of the cache. */
export function tokensCsv({ rows }: Trace): string {
  return csv([
    ['position', 'id', 'text', 'phase', 'call'],
    ...rows.map(({ id, text, phase, call }, position) => [position, id, text, phase, call]),
  ]);
}

/** One line per candidate that was kept. */
export function candidatesCsv({ calls }: Trace): string {
  return csv([
    ['call', 'rank', 'token', 'text', 'logit', 'probability', 'logprob'],
    ...calls.flatMap(({ candidates }, call) =>
      candidates.map(({ token, text, logit, probability, logprob }, rank) => [
        call,
        rank,
        token,
        text,
        logit,
        probability,
        logprob,
      ]),
    ),
  ]);
}
