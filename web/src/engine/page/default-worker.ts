/** Starts the worker file of this package. */
import { KvLensError } from '../../errors.js';

/** A worker of `node:worker_threads`. */
interface NodeWorker {
  on(type: 'message' | 'error' | 'exit', listener: (data: unknown) => void): unknown;
  postMessage(message: unknown): void;
  terminate(): Promise<number>;
}

export type EngineWorker = Worker | NodeWorker;

/** Errors: unsupported_environment. */
export async function defaultWorker(): Promise<EngineWorker> {
  if (typeof Worker !== 'undefined') {
    try {
      // Bundlers recognise this form and bundle the worker.
      return new Worker(new URL('../../worker.js', import.meta.url), {
        type: 'module',
        name: 'kvlens',
      });
    } catch (error) {
      // Another origin, a content security policy, or Trusted Types.
      const reason = error instanceof Error ? error.message : String(error);
      throw cannotStart(
        `the page refuses kvlens's worker: ${reason}; allow it, or make it with createWorker`,
        error,
      );
    }
  }
  // Service workers and, in most browsers, shared workers.
  if ('WorkerGlobalScope' in globalThis) {
    const advice = "create the engine in a page, or use 'kvlens/core' in a worker of your own";
    throw cannotStart(`a worker cannot be started from here; ${advice}`);
  }
  // Node. The name is kept out of the import so that bundlers do not try to resolve it.
  const threads = 'node:worker_threads';
  const base = import.meta.url;
  try {
    const { Worker: ThreadWorker } = (await import(
      /* @vite-ignore */ /* webpackIgnore: true */ threads
    )) as { Worker: new (file: URL) => NodeWorker };
    return new ThreadWorker(new URL('../../worker.js', base));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw cannotStart(`a worker cannot be started here: ${reason}; give createWorker`, error);
  }
}

function cannotStart(message: string, cause?: unknown): KvLensError {
  const context = { field: 'worker', value: 'refused', allowed: 'a module worker' };
  return new KvLensError('unsupported_environment', context, message, cause);
}
