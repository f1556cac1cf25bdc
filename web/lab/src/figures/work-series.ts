// Sums of work up to each prefix of a session: as the cache did it, and as complete-prefix replays
// do it.
//
// The work with the cache is always measured. A replay is measured where one of that length was
// run. Otherwise its counters are computed by the package, and its time follows from the
// multiply-adds per millisecond of the replays that were run.
import { computedReplayWork, type Config, type StepInfo, type StepPhase, type Work } from 'kvlens';
import { totalMultiplyAdds } from '../work-sums.js';

export const WORK_METRICS = ['causalScores', 'scores', 'multiplyAdds', 'milliseconds'] as const;

/**
 * `causalScores`: query-key products computed. `scores`: entries of the attention grids, masked
 * ones included (a cached row has as many as its length, a replay T x T).
 */
export type WorkMetric = (typeof WORK_METRICS)[number];

export type WorkTotals = Readonly<Record<WorkMetric, number>>;

export interface WorkPoint {
  /** Tokens in the prefix. */
  readonly length: number;
  /** The call that brought the session to it. */
  readonly phase: StepPhase;
  /** Sum of the calls so far. */
  readonly cached: WorkTotals;
  /** Sum of a replay of each prefix so far; `milliseconds` is NaN when no replay was run at all. */
  readonly replay: WorkTotals;
  /**
   * Whether the replay of this very prefix was run, so that what it adds to the sums is measured.
   */
  readonly replayMeasured: boolean;
}

/** A replay that was run. */
export interface ReplayRun {
  readonly nTokens: number;
  readonly work: Work;
  readonly milliseconds: number;
}

type Counts = Omit<WorkTotals, 'milliseconds'>;

export function countsOf(work: Work): Counts {
  return {
    scores: work.attentionScoreValues,
    causalScores: work.causalScoreValues,
    multiplyAdds: totalMultiplyAdds(work),
  };
}

const zero: WorkTotals = { scores: 0, causalScores: 0, multiplyAdds: 0, milliseconds: 0 };

function plus(sum: WorkTotals, counts: Counts, milliseconds: number): WorkTotals {
  return {
    scores: sum.scores + counts.scores,
    causalScores: sum.causalScores + counts.causalScores,
    multiplyAdds: sum.multiplyAdds + counts.multiplyAdds,
    milliseconds: sum.milliseconds + milliseconds,
  };
}

/**
 * The calls that made the rows the session has now: those of a branch that was cut off are left
 * out.
 */
export function presentSteps(steps: readonly StepInfo[]): StepInfo[] {
  const present: StepInfo[] = [];
  for (const step of steps) {
    while (present.length > 0 && present.at(-1)!.kvLen > step.kvLenBefore) present.pop();
    present.push(step);
  }
  return present;
}

/**
 * One point for each call that made present rows; of several replays of one length the first
 * counts.
 */
export function workSeries(
  config: Config,
  steps: readonly StepInfo[],
  replays: readonly ReplayRun[],
): WorkPoint[] {
  const runs = new Map<number, ReplayRun>();
  for (const run of replays) if (!runs.has(run.nTokens)) runs.set(run.nTokens, run);
  let rateProducts = 0;
  let rateMilliseconds = 0;
  for (const { work, milliseconds } of replays) {
    rateProducts += countsOf(work).multiplyAdds;
    rateMilliseconds += milliseconds;
  }

  let cached = zero;
  let replay = zero;
  return presentSteps(steps).map((step) => {
    const run = runs.get(step.kvLen);
    const counts = countsOf(run ? run.work : computedReplayWork(config, step.kvLen));
    // A prefill into an empty cache is itself a pass over the complete prefix: the cache neither
    // saves nor costs anything there, and two timings of the same work would only differ by noise.
    const milliseconds =
      step.kvLenBefore === 0 && replays.length > 0
        ? step.milliseconds
        : (run?.milliseconds ?? (counts.multiplyAdds * rateMilliseconds) / rateProducts);
    cached = plus(cached, countsOf(step.work), step.milliseconds);
    replay = plus(replay, counts, milliseconds);
    return {
      length: step.kvLen,
      phase: step.phase,
      cached,
      replay,
      replayMeasured: run !== undefined,
    };
  });
}

/** How much more the replays cost up to a point. It is negative where the cache cost more. */
export function difference({ cached, replay }: WorkPoint, metric: WorkMetric): number {
  return replay[metric] - cached[metric];
}
