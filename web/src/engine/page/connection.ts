/**
 * The page's end of the line to one worker.
 *
 * Every call is pending here until its reply, its error, or the end of the worker, whichever comes
 * first, so no promise is left unsettled.
 */
import type { CallProgress, GeneratedToken, LoadProgress } from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import type { CallEvent, CallRequest, ObjectKind, ToPage, ToWorker } from '../protocol/messages.js';
import { fromPlainError } from '../protocol/plain-error.js';
import { onMessage, type Port } from '../protocol/port.js';
import type { Call } from '../worker/call.js';
import type { Service } from '../worker/service.js';
import { defaultWorker, type EngineWorker } from './default-worker.js';

/** Methods of the engine itself, as `Service` declares them. */
type EngineMethods = Pick<
  Service,
  'start' | 'memory' | 'loadModel' | 'randomModel' | 'createCache' | 'bind' | 'createSession'
>;
type Arguments<Method> = Method extends (call: Call, ...args: infer Args) => unknown ? Args : never;
type Value<Method extends (...args: never) => unknown> = Awaited<ReturnType<Method>>;

/** What a call may be given beside its arguments. */
export interface CallHooks {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: CallProgress & LoadProgress) => void) | undefined;
  readonly onToken?: ((token: GeneratedToken) => void) | undefined;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly onEvent: (event: CallEvent) => void;
}

export class Connection {
  /** Resolves when the worker has ended, whatever ended it. */
  readonly ended: Promise<void>;
  readonly #worker: EngineWorker;
  readonly #pending = new Map<number, Pending>();
  #nextCall = 1;
  /** Whether the worker has ever answered. */
  #heard = false;
  #end: KvLensError | undefined;
  #resolveEnded: () => void = () => {};

  private constructor(worker: EngineWorker) {
    this.#worker = worker;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    if ('on' in worker) {
      worker.on('error', (error) => this.#died(error));
      worker.on('exit', (code) => this.#died(`the worker exited with code ${String(code)}`));
    } else {
      // A worker that threw outside of a call is in an unknown state.
      worker.addEventListener('error', (event) =>
        this.#died(event.error ?? (event.message || this.#notStarted())),
      );
      worker.addEventListener('messageerror', () =>
        this.#died('a message from the worker could not be read'),
      );
    }
    onMessage(worker as Port, (message) => this.#receive(message as ToPage));
  }

  /** Errors: unsupported_environment, worker_died. */
  static async open(createWorker: (() => Worker) | undefined): Promise<Connection> {
    return new Connection(createWorker ? createWorker() : await defaultWorker());
  }

  /** Calls a method of the engine itself. */
  callEngine<Name extends keyof EngineMethods>(
    method: Name,
    args: Arguments<EngineMethods[Name]>,
    hooks?: CallHooks,
  ): Promise<Value<EngineMethods[Name]>> {
    return this.call('engine', 0, method, args as unknown[], hooks) as Promise<
      Value<EngineMethods[Name]>
    >;
  }

  /** Calls a method of an object in the worker. Errors: its own, aborted, disposed, worker_died. */
  call(
    on: ObjectKind,
    object: number,
    method: string,
    args: readonly unknown[],
    { signal, onProgress, onToken }: CallHooks = {},
  ): Promise<unknown> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const id = this.#nextCall++;
    const request: CallRequest = {
      id,
      on,
      object,
      method,
      args,
      listens: onProgress !== undefined,
      abort: signal?.aborted ? plainReason(signal.reason) : undefined,
    };
    return new Promise((resolve, reject) => {
      const abort = (): void => this.#send({ id, abort: plainReason(signal?.reason) });
      const settle = (finish: () => void): void => {
        if (!this.#pending.delete(id)) return;
        signal?.removeEventListener('abort', abort);
        finish();
      };
      const fail = (error: Error): void => settle(() => reject(withReason(error, signal)));
      this.#pending.set(id, {
        resolve: (value) => settle(() => resolve(value)),
        reject: fail,
        onEvent: (event) => {
          try {
            if (event.kind === 'token') onToken?.(event.token);
            else onProgress?.(event.progress as CallProgress & LoadProgress);
          } catch (error) {
            // An error of the caller's own callback ends the call.
            abort();
            settle(() => reject(error as Error));
          }
          if (event.kind === 'progress') this.#send({ id, handled: true });
        },
      });
      try {
        this.#send(request);
      } catch (error) {
        fail(notPlainData(error));
        return;
      }
      signal?.addEventListener('abort', abort);
    });
  }

  /** Ends the worker. Everything pending rejects with `disposed`. */
  async dispose(): Promise<void> {
    this.#finish(new KvLensError('disposed', { name: 'Engine' }, 'the engine has been disposed'));
    await this.#worker.terminate();
  }

  /** Browsers give no reason if a worker's file cannot be loaded. */
  #notStarted(): string {
    if (this.#heard) return 'the worker failed';
    return (
      "the worker could not be started: its file cannot be loaded. If a bundler has moved kvlens's " +
      'files, leave kvlens out of its optimisation or give createWorker'
    );
  }

  #send(message: ToWorker): void {
    if (this.#end === undefined) this.#worker.postMessage(message);
  }

  #receive(message: ToPage): void {
    this.#heard = true;
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    if ('event' in message) pending.onEvent(message.event);
    else if ('error' in message) pending.reject(fromPlainError(message.error));
    else pending.resolve(message.reply);
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

function notPlainData(error: unknown): KvLensError {
  const message = error instanceof Error ? error.message : String(error);
  const context = { field: 'arguments', value: message, allowed: 'plain data' };
  return new KvLensError('invalid_argument', context, message, error);
}

/** A reason that a message can carry; the page keeps the real one. */
function plainReason(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** Gives an aborted call's error the signal's own reason as its cause. */
function withReason(error: Error, signal: AbortSignal | undefined): Error {
  if (!(error instanceof KvLensError) || error.code !== 'aborted' || !signal?.aborted) return error;
  return new KvLensError('aborted', {}, error.message, signal.reason);
}
