/** Ends a stream of text before the first of several stop texts. */
export class StopStrings {
  readonly #stops: readonly string[];
  /** The end of the text so far, if a stop text may begin there. */
  #held = '';
  #found = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  get found(): boolean {
    return this.#found;
  }

  /** Returns the text that is certain not to belong to a stop text. */
  push(text: string): string {
    const whole = this.#held + text;
    const at = this.#stops.map((stop) => whole.indexOf(stop)).filter((index) => index >= 0);
    if (at.length > 0) {
      this.#found = true;
      this.#held = '';
      return whole.slice(0, Math.min(...at));
    }
    const keep = Math.max(0, ...this.#stops.map((stop) => overlap(whole, stop)));
    this.#held = whole.slice(whole.length - keep);
    return whole.slice(0, whole.length - keep);
  }

  /** Returns the text that is still held back, once nothing follows. */
  end(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}

/** Returns the length of the longest end of `text` that is also a beginning of `stop`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; --length) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
