/**
 * The page's end of the line to one worker.
 *
 * Every call is pending here until its reply, an abort's reply, or the end of the worker, whichever
 * comes first: nothing is ever left waiting.
 */
import { proxy, wrap, type Remote } from 'comlink';

import { KvLensError } from '../../errors.js';
import { fromPlainError, type CallEvent, type WorkerPort } from '../protocol/messages.js';
import { nodeEndpoint, type NodePort } from '../protocol/node-endpoint.js';
import type { Call, ServiceMethods } from '../worker/service.js';

/** A worker of `node:worker_threads`. */
interface NodeWorker extends NodePort {
  on(type: 'message' | 'error' | 'exit', listener: (data: unknown) => void): unknown;
  terminate(): Promise<number>;
}

export type MethodName = keyof ServiceMethods;
type Arguments<Name extends MethodName> = ServiceMethods[Name] extends (
  call: Call,
  ...args: infer Args
) => unknown
  ? Args
  : never;
type Value<Name extends MethodName> = Awaited<ReturnType<ServiceMethods[Name]>>;

/** What a call may be given beside its arguments. */
export interface CallHooks {
  readonly signal?: AbortSignal | undefined;
  readonly onEvent?: ((event: CallEvent) => void) | undefined;
}

export class Connection {
  readonly ended: Promise<void>;
  readonly #worker: Worker | NodeWorker;
  readonly #remote: Remote<WorkerPort>;
  readonly #pending = new Map<
    number,
    { reject: (error: Error) => void; onEvent: CallHooks['onEvent'] }
  >();
  #nextCall = 1;
  #end: KvLensError | undefined;
  #resolveEnded: () => void = () => {};

  private constructor(worker: Worker | NodeWorker) {
    this.#worker = worker;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    if ('on' in worker) {
      worker.on('error', (error) => this.#died(error));
      worker.on('exit', (code) =>
        this.#died(new Error(`the worker exited with code ${String(code)}`)),
      );
      this.#remote = wrap<WorkerPort>(nodeEndpoint(worker));
    } else {
      // A worker that threw outside of a call is in no known state.
      worker.addEventListener('error', (event) =>
        this.#died(event.error ?? new Error(event.message || 'the worker could not be started')),
      );
      worker.addEventListener('messageerror', () =>
        this.#died(new Error('a message of the worker could not be read')),
      );
      this.#remote = wrap<WorkerPort>(worker);
    }
  }

  /** Errors: worker_died. */
  static async open(createWorker: (() => Worker) | undefined): Promise<Connection> {
    const connection = new Connection(createWorker ? createWorker() : await defaultWorker());
    const listening = connection.#remote.listen(
      proxy((callId: number, event: CallEvent) =>
        connection.#pending.get(callId)?.onEvent?.(event),
      ),
    );
    await Promise.race([listening, connection.ended]);
    if (connection.#end !== undefined) throw connection.#end;
    return connection;
  }

  call<Name extends MethodName>(
    method: Name,
    args: Arguments<Name>,
    hooks: CallHooks = {},
  ): Promise<Value<Name>> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const callId = this.#nextCall++;
    const { signal, onEvent } = hooks;
    if (signal?.aborted) {
      return Promise.reject(
        new KvLensError('aborted', {}, 'the signal was aborted before the call', signal.reason),
      );
    }
    return new Promise<Value<Name>>((resolve, reject) => {
      const abort = (): void => {
        void this.#remote.abort(callId, plainReason(signal?.reason)).catch(() => {});
      };
      const settle = (finish: () => void): void => {
        if (!this.#pending.delete(callId)) return;
        signal?.removeEventListener('abort', abort);
        finish();
      };
      // An error of the caller's own callback ends the call.
      const guarded =
        onEvent &&
        ((event: CallEvent): void => {
          try {
            onEvent(event);
          } catch (error) {
            abort();
            settle(() => reject(error as Error));
          }
        });
      this.#pending.set(callId, {
        reject: (error) => settle(() => reject(error)),
        onEvent: guarded,
      });
      this.#remote.call(callId, method, args as unknown[]).then(
        (reply) =>
          settle(() => {
            if (reply.ok) resolve(reply.value as Value<Name>);
            else reject(withReason(fromPlainError(reply.error), signal));
          }),
        // Something in the arguments cannot be sent.
        (error: unknown) =>
          settle(() => {
            const message = error instanceof Error ? error.message : String(error);
            reject(
              new KvLensError(
                'invalid_argument',
                { field: 'arguments', value: message, allowed: 'plain data' },
                message,
                error,
              ),
            );
          }),
      );
      signal?.addEventListener('abort', abort);
    });
  }

  /** Ends the worker. Everything pending rejects with `disposed`. */
  async dispose(): Promise<void> {
    this.#finish(
      new KvLensError('disposed', { name: 'Engine' }, 'the engine has been disposed of'),
    );
    await this.#worker.terminate();
  }

  #died(cause: unknown): void {
    if (this.#end !== undefined) return;
    const reason = cause instanceof Error ? cause.message : String(cause);
    this.#finish(
      new KvLensError('worker_died', {}, `the engine's worker has ended: ${reason}`, cause),
    );
    void this.#worker.terminate();
  }

  #finish(error: KvLensError): void {
    if (this.#end !== undefined) return;
    this.#end = error;
    for (const { reject } of [...this.#pending.values()]) reject(error);
    this.#resolveEnded();
  }
}

/** The worker file of this package. */
async function defaultWorker(): Promise<Worker | NodeWorker> {
  if (typeof Worker !== 'undefined') {
    // Written so that bundlers find the worker.
    return new Worker(new URL('../../worker.js', import.meta.url), {
      type: 'module',
      name: 'kvlens',
    });
  }
  // Node. The names are kept from bundlers, which would look for them.
  const threads = 'node:worker_threads';
  const { Worker: ThreadWorker } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ threads
  )) as {
    Worker: new (file: URL) => NodeWorker;
  };
  const base = import.meta.url;
  return new ThreadWorker(new URL('../../worker.js', base));
}

/** A reason that can be sent; the page keeps the real one. */
function plainReason(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** Gives an aborted call's error the signal's own reason as its cause. */
function withReason(error: Error, signal: AbortSignal | undefined): Error {
  if (!(error instanceof KvLensError) || error.code !== 'aborted' || !signal?.aborted) return error;
  return new KvLensError('aborted', {}, error.message, signal.reason);
}
