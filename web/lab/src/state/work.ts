// One piece of work at a time: what is running, how to stop it, and where its failure is told.
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

/** What `run` gives to the work that it runs. */
export interface Progressing {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: CallProgress) => void;
}

let before: Promise<unknown> = Promise.resolve();

/**
 * Runs `work` once what is running has ended; a failure is told at `site`. Resolves to whether it
 * went well. Being stopped by the person is no failure.
 */
export function run(kind: BusyKind, site: Site, work: Work): Promise<boolean> {
  const turn = before.then(() => runNow(kind, site, work));
  before = turn;
  return turn;
}

type Work = (progressing: Progressing) => Promise<void>;

/** Milliseconds after which a person begins to wait. */
const patience = 250;

let running: AbortController | undefined;

async function runNow(kind: BusyKind, site: Site, work: Work): Promise<boolean> {
  const abort = new AbortController();
  running = abort;
  stopped.value = undefined;
  let progress = { done: 0, total: 0 };
  const timer = setTimeout(() => (busy.value = { kind, ...progress }), patience);
  clearProblem(site);
  try {
    await work({
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

/** Stops what is running, where it can be stopped. */
export function stop(): void {
  running?.abort();
}
