/**
 * Finds the first of several texts in a stream, and lets nothing of it through. The stream may hold
 * hidden parts, the names of control tokens, which are searched but never let through.
 */
export class StopStrings {
  readonly #stops: readonly string[];
  /** The end of the text so far, if a stop text may begin there. */
  #held = '';
  /** One character for each of `#held`: "v" if it is visible, "h" if it is hidden. */
  #heldKinds = '';
  #found = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  get found(): boolean {
    return this.#found;
  }

  /** Returns the text that is certain not to belong to a stop text. */
  push(text: string, isHidden = false): string {
    const whole = this.#held + text;
    const kinds = this.#heldKinds + (isHidden ? 'h' : 'v').repeat(text.length);
    const at = this.#stops.map((stop) => whole.indexOf(stop)).filter((index) => index >= 0);
    let end = Math.min(...at);
    if (at.length > 0) {
      this.#found = true;
      this.#held = '';
      this.#heldKinds = '';
    } else {
      end = whole.length - Math.max(0, ...this.#stops.map((stop) => overlap(whole, stop)));
      this.#held = whole.slice(end);
      this.#heldKinds = kinds.slice(end);
    }
    return visible(whole.slice(0, end), kinds);
  }

  /** Returns the text that is still held back, once nothing follows. */
  end(): string {
    const held = visible(this.#held, this.#heldKinds);
    this.#held = '';
    this.#heldKinds = '';
    return held;
  }
}

function visible(text: string, kinds: string): string {
  if (!kinds.includes('h')) return text;
  return text.replace(/[\s\S]/g, (unit, at: number) => (kinds[at] === 'v' ? unit : ''));
}

/** Length of the longest end of `text` that `stop` begins with. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; --length) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
