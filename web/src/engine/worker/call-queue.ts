/**
 * Runs the calls of one session one at a time, in the order in which they were made.
 *
 * A call that fails does not keep the next ones from running. A call that waits can be aborted; it
 * then never runs.
 */
import type { KvLensError } from '../../errors.js';
import { aborted } from './call.js';
import { yieldToMessages } from './yield-to-messages.js';

interface Waiting {
  readonly start: () => void;
  readonly reject: (error: Error) => void;
}

export class CallQueue {
  #running = false;
  #closed: KvLensError | undefined;
  readonly #waiting: Waiting[] = [];

  /** Whether a call is running. */
  get running(): boolean {
    return this.#running;
  }

  /** Runs `call` in its turn, at once if none runs. Errors: its own, aborted, those of `close`. */
  async run<T>(signal: AbortSignal, call: () => T | Promise<T>): Promise<T> {
    if (this.#closed) throw this.#closed;
    if (signal.aborted) throw aborted(signal);
    if (this.#running) await this.#turn(signal);
    this.#running = true;
    try {
      if (this.#closed) throw this.#closed;
      if (signal.aborted) throw aborted(signal);
      return await call();
    } finally {
      const next = this.#waiting.shift();
      if (next) next.start();
      else this.#running = false;
    }
  }

  /** Rejects the calls that wait, and every later one, with `error`. */
  close(error: KvLensError): void {
    this.#closed = error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  async #turn(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(aborted(signal));
      };
      const waiting: Waiting = {
        start: () => {
          signal.removeEventListener('abort', abort);
          resolve();
        },
        reject: (error) => {
          signal.removeEventListener('abort', abort);
          reject(error);
        },
      };
      signal.addEventListener('abort', abort);
      this.#waiting.push(waiting);
    });
    // Short calls that waited would otherwise run without a pause in which an abort can arrive.
    await yieldToMessages();
  }
}
