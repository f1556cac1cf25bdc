/** Starts the worker file of this package. */

/** A worker of `node:worker_threads`. */
interface NodeWorker {
  on(type: 'message' | 'error' | 'exit', listener: (data: unknown) => void): unknown;
  postMessage(message: unknown): void;
  terminate(): Promise<number>;
}

export type EngineWorker = Worker | NodeWorker;

export async function defaultWorker(): Promise<EngineWorker> {
  if (typeof Worker !== 'undefined') {
    // Bundlers recognise this form and bundle the worker.
    return new Worker(new URL('../../worker.js', import.meta.url), {
      type: 'module',
      name: 'kvlens',
    });
  }
  // Node. The name is kept out of the import so that bundlers do not try to resolve it.
  const threads = 'node:worker_threads';
  const { Worker: ThreadWorker } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ threads
  )) as {
    Worker: new (file: URL) => NodeWorker;
  };
  const base = import.meta.url;
  return new ThreadWorker(new URL('../../worker.js', base));
}
