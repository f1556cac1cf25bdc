/** Finds the first of several texts in a stream, and lets nothing of it through. */
export class StopStrings {
  readonly #stops: readonly string[];
  /** What may be the beginning of a stop. */
  #held = '';
  #found = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  get found(): boolean {
    return this.#found;
  }

  /** The text that can be shown now. */
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

  /** What was held back, when nothing follows. */
  end(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}

/** Length of the longest end of `text` that `stop` begins with. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; --length) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
