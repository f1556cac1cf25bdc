// One job at a time: what is running, how to stop it, and where its failure is reported.
import { isKvLensError, type CallProgress } from 'kvlens';
import {
  busy,
  clearProblem,
  report,
  stopped,
  type BusyKind,
  type Problem,
  type Site,
} from './store.js';

export function asProblem(error: unknown): Problem {
  if (isKvLensError(error)) return { kind: 'error', error };
  return { kind: 'other', message: error instanceof Error ? error.message : String(error) };
}

/** Every job gets these and passes them on to the engine's calls. */
export interface JobOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: CallProgress) => void;
}

type Job = (options: JobOptions) => Promise<void>;

let previous: Promise<unknown> = Promise.resolve();

/**
 * Runs `job` once the jobs before it have ended, and reports a failure at `site`. Resolves to true
 * if it succeeded. A job that the user stopped has not failed, and resolves to false.
 */
export function run(kind: BusyKind, site: Site, job: Job): Promise<boolean> {
  const turn = previous.then(() => runNow(kind, site, job));
  previous = turn;
  return turn;
}

/** Milliseconds before a job counts as something to wait for. */
const patience = 250;

let running: AbortController | undefined;

async function runNow(kind: BusyKind, site: Site, job: Job): Promise<boolean> {
  const abort = new AbortController();
  running = abort;
  stopped.value = undefined;
  let progress = { done: 0, total: 0 };
  const timer = setTimeout(() => (busy.value = { kind, ...progress }), patience);
  clearProblem(site);
  try {
    await job({
      signal: abort.signal,
      onProgress: ({ done, total }) => {
        progress = { done, total };
        if (busy.value) busy.value = { kind, ...progress };
      },
    });
    return true;
  } catch (error) {
    if (abort.signal.aborted && isKvLensError(error) && error.code === 'aborted')
      stopped.value = kind;
    else report(site, asProblem(error));
    return false;
  } finally {
    clearTimeout(timer);
    busy.value = undefined;
    running = undefined;
  }
}

/** Stops the running job, if it can be stopped. */
export function stop(): void {
  running?.abort();
}
