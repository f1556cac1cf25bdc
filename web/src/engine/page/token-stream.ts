/** Queues tokens as they come from the worker, for one loop to read. */
import type { GeneratedToken, GenerationResult, GenerationStream } from '../../engine-api.js';

export class TokenStream implements GenerationStream {
  readonly result: Promise<GenerationResult>;
  readonly #queue: GeneratedToken[] = [];
  readonly #abort: (reason: unknown) => void;
  #wake: () => void = () => {};
  #finished = false;

  /** `run` starts the generation; `abort` is called when the loop is left early. */
  constructor(
    run: (onToken: (token: GeneratedToken) => void) => Promise<GenerationResult>,
    abort: (reason: unknown) => void,
  ) {
    this.#abort = abort;
    this.result = run((token) => {
      this.#queue.push(token);
      this.#wake();
    }).finally(() => {
      this.#finished = true;
      this.#wake();
    });
    // Whoever awaits the result or reads the stream gets a failure; nobody has to.
    this.result.catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<GeneratedToken, void, void> {
    let complete = false;
    try {
      for (;;) {
        const token = this.#queue.shift();
        if (token !== undefined) {
          yield token;
        } else if (this.#finished) {
          complete = true;
          await this.result;
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      // After the loop, the session is as it was before: the worker has undone the call.
      if (!complete && !this.#finished) {
        this.#abort(new Error('the loop over the stream was left'));
        await this.result.catch(() => {});
      }
    }
  }
}
