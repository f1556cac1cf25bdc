/** One call of the page that the worker serves. */
import type { CallProgress, GeneratedToken, LoadProgress } from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import type { CallEvent } from '../protocol/messages.js';

/** What a method of the worker is given beside its arguments. */
export interface Call {
  readonly signal: AbortSignal;
  /**
   * Present if the page wants progress. The promise resolves when the page has handled the report,
   * so an abort by its callback is seen before the next step.
   */
  readonly onProgress?: (progress: CallProgress) => unknown;
  /** The same for the load of a model. */
  readonly onLoadProgress?: (progress: LoadProgress) => unknown;
  readonly onToken?: (token: GeneratedToken) => void;
}

/** A call whose events go to the page as messages. */
export class RunningCall implements Call {
  readonly onProgress?: (progress: CallProgress) => Promise<void>;
  readonly onLoadProgress?: (progress: LoadProgress) => Promise<void>;
  readonly onToken: (token: GeneratedToken) => void;
  readonly #controller = new AbortController();
  /** Resolves the progress events that the page has not handled yet, oldest first. */
  readonly #unhandled: (() => void)[] = [];

  constructor(listens: boolean, send: (event: CallEvent) => void) {
    if (listens) {
      const report = (progress: CallProgress | LoadProgress): Promise<void> => {
        if (this.signal.aborted) return Promise.resolve();
        send({ kind: 'progress', progress });
        return new Promise((resolve) => this.#unhandled.push(resolve));
      };
      this.onProgress = report;
      this.onLoadProgress = report;
    }
    this.onToken = (token) => send({ kind: 'token', token });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  handled(): void {
    this.#unhandled.shift()?.();
  }

  /** A call that waits for the page goes on at once, and sees the abort. */
  abort(reason: string): void {
    this.#controller.abort(reason);
    for (const resolve of this.#unhandled.splice(0)) resolve();
  }
}

export function aborted(signal: AbortSignal): KvLensError<'aborted'> {
  return new KvLensError(
    'aborted',
    {},
    'the call was aborted; the session is as it was before',
    signal.reason,
  );
}
