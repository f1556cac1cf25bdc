/**
 * Notices when the module's threads cannot start.
 *
 * The module's script makes one worker per thread. It waits for them without a limit, and if one
 * fails it throws where nobody can catch it. So while the script starts, the workers that it makes
 * are watched from outside: `Worker` is replaced by a subclass that reports each of them.
 */

export interface ThreadWatch {
  /** Watches from here on; `onFailure` is called if a thread fails or does not start in time. */
  start(onFailure: (error: Error) => void): void;
  /** All threads have started. */
  stop(): void;
  /** The module cannot be used: ends the threads that were made. */
  fail(): void;
}

type Watcher = (worker: Worker) => void;

const watchers = new Set<Watcher>();
let original: typeof Worker | undefined;

/** `patience`: milliseconds after which threads that have not started count as failed. */
export function watchThreads(patience: number): ThreadWatch {
  const workers = new Map<Worker, (event: Event) => void>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onFailure: (error: Error) => void = () => {};

  const watcher: Watcher = (worker) => {
    const onError = (event: Event): void => {
      // The script's own listener would throw.
      event.stopImmediatePropagation();
      event.preventDefault();
      const { message } = event as ErrorEvent;
      onFailure(new Error(`a thread could not be started${message ? `: ${message}` : ''}`));
    };
    worker.addEventListener('error', onError);
    workers.set(worker, onError);
  };
  const end = (): void => {
    clearTimeout(timer);
    unwatch(watcher);
    for (const [worker, onError] of workers) worker.removeEventListener('error', onError);
  };

  return {
    start(report) {
      onFailure = report;
      const late = `its threads did not start within ${patience / 1000} seconds`;
      timer = setTimeout(() => report(new Error(late)), patience);
      watch(watcher);
    },
    stop: end,
    fail() {
      end();
      for (const worker of workers.keys()) worker.terminate();
    },
  };
}

function watch(watcher: Watcher): void {
  watchers.add(watcher);
  // In Node the script takes its workers from `node:worker_threads`; only the time limit holds.
  if (original !== undefined || typeof Worker === 'undefined') return;
  original = Worker;
  globalThis.Worker = class extends original {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options);
      for (const each of watchers) each(this);
    }
  };
}

function unwatch(watcher: Watcher): void {
  watchers.delete(watcher);
  if (watchers.size > 0 || original === undefined) return;
  globalThis.Worker = original;
  original = undefined;
}
