// Sums of work up to each prefix of a session: as the cache did it, and as complete-prefix replays
// do it.
//
// What the cache did is measured, always. A replay is measured where one of that length was run;
// elsewhere its counters are the package's computed ones, and its time follows from the
// multiply-adds a millisecond of the replays that were run.
import { computedReplayWork, type Config, type StepInfo, type StepPhase, type Work } from 'kvlens';
import { totalMultiplyAdds } from '../work-sums.js';

export const WORK_METRICS = ['scores', 'causalScores', 'multiplyAdds', 'milliseconds'] as const;

/**
 * `scores`: entries of attention tensors made (a cached row has its length, a replay T x T);
 * `causalScores`: query-key products computed.
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
    const milliseconds =
      run?.milliseconds ?? (counts.multiplyAdds * rateMilliseconds) / rateProducts;
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

/** What the cache spared up to a point. */
export function avoided({ cached, replay }: WorkPoint, metric: WorkMetric): number {
  return replay[metric] - cached[metric];
}
