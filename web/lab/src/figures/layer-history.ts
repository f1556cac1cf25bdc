// The attention rows of one layer, over all calls of a session: exact rows while there is memory
// for them, and what stays of them afterwards.
import { inductionKeys, rowScores, RunningScores, type HeadScores } from './head-stats.js';
import { PooledMap } from './pooled-map.js';
import type { MapSource, Weights } from './types.js';

/** Where an exact row came from. */
type Origin = 'call' | 'replay';

/** The row of one position: all heads of the layer, `[nHeads, position + 1]`. */
interface StoredRow {
  readonly weights: Weights;
  readonly origin: Origin;
}

/** `[nHeads, position + 1]` to the mean over heads, in double precision. */
export function meanOverHeads(weights: Weights, nHeads: number): Float64Array {
  const length = weights.length / nHeads;
  const mean = new Float64Array(length);
  for (let head = 0; head < nHeads; ++head) {
    for (let key = 0; key < length; ++key) mean[key]! += weights[head * length + key]!;
  }
  for (let key = 0; key < length; ++key) mean[key]! /= nHeads;
  return mean;
}

export class LayerHistory {
  /**
   * One more each time that rows seen before changed or went: what was drawn from them is out of
   * date.
   */
  epoch = 0;
  /** Of the exact rows kept. */
  bytes = 0;
  /** Thumbnails of the heads, then that of their mean. */
  readonly pooled: readonly PooledMap[];

  // By position; undefined where a row is missing.
  #rows: (StoredRow | undefined)[] = [];
  // By position, one per head; undefined where a row was never captured or is not scored yet.
  #scores: (readonly HeadScores[] | undefined)[] = [];
  // Kept rows that are still to be scored, in the order they came: entropies of all heads cost
  // more than everything else that a row needs, and nobody looks at most layers.
  readonly #unscored: { readonly query: number; readonly tokens: ArrayLike<number> }[] = [];
  // Of each head over all rows seen but row 0, which sees itself alone.
  #running: RunningScores[] = [];
  // Positions whose rows the thumbnails show.
  readonly #pooledRows = new Set<number>();
  // Only the newest row is kept.
  #dropped = false;

  constructor(
    readonly nHeads: number,
    readonly slidingWindow: number,
  ) {
    this.pooled = Array.from({ length: nHeads + 1 }, () => new PooledMap());
    this.#resetRunning();
  }

  get length(): number {
    return this.#rows.length;
  }

  /** Rows that the thumbnails show. */
  get rowsPooled(): number {
    return this.#pooledRows.size;
  }

  /** Rows that `meanScores` averages over. */
  get rowsScored(): number {
    this.#scoreAll();
    return this.#scores.reduce((n, scores, query) => (scores && query > 0 ? n + 1 : n), 0);
  }

  has(query: number): boolean {
    return this.#rows[query] !== undefined;
  }

  /** Whether every row is available. */
  get whole(): boolean {
    return this.#rows.every((row) => row !== undefined);
  }

  /** A new position whose row was not captured. */
  appendUnseen(): void {
    this.#grow();
  }

  /**
   * The row of the next position, which the history keeps; `tokens` are the session's, up to it at
   * least.
   */
  append(weights: Weights, tokens: ArrayLike<number>): void {
    this.#grow();
    this.#put(this.length - 1, weights, 'call', tokens);
  }

  /** Adds the missing rows from `map`, which is `[nHeads, n, n]` of a replay. */
  fill(map: Weights, n: number, tokens: ArrayLike<number>): void {
    for (let query = 0; query < Math.min(n, this.length); ++query) {
      if (this.#rows[query]) continue;
      this.#put(query, rowOfMap(map, this.nHeads, n, query, query), 'replay', tokens);
    }
    this.#dropped = false;
    ++this.epoch;
  }

  /** Drops the exact rows, those to come too, except the newest one. */
  drop(): void {
    if (this.#dropped) return;
    this.#scoreAll();
    const newest = this.#rows.at(-1);
    this.#rows = this.#rows.map((_, query) => (query === this.length - 1 ? newest : undefined));
    this.bytes = newest?.weights.byteLength ?? 0;
    this.#dropped = true;
    ++this.epoch;
  }

  /** Keeps the rows before `length`. Thumbnails are drawn again from the rows that are kept. */
  truncate(length: number): void {
    if (length >= this.length) return;
    this.#scoreAll();
    for (const row of this.#rows.slice(length)) this.bytes -= row?.weights.byteLength ?? 0;
    this.#rows.length = length;
    this.#scores.length = length;
    ++this.epoch;
    for (const pooled of this.pooled) pooled.clear();
    this.#pooledRows.clear();
    this.#rows.forEach((row, query) => row && this.#pool(query, row.weights));
    this.#resetRunning();
    this.#scores.forEach((scores, query) => scores && this.#addRunning(query, scores));
    if (length === 0) this.#dropped = false;
  }

  row(head: number | 'mean', query: number): Weights | undefined {
    const stored = this.#rows[query];
    if (!stored) return undefined;
    if (head === 'mean') return meanOverHeads(stored.weights, this.nHeads);
    return stored.weights.subarray(head * (query + 1), (head + 1) * (query + 1));
  }

  /** The weight that `query` gives to `key`; undefined if the row is missing. */
  weight(head: number | 'mean', query: number, key: number): number | undefined {
    const stored = this.#rows[query];
    if (!stored) return undefined;
    const at = (of: number) => stored.weights[of * (query + 1) + key]!;
    if (head !== 'mean') return at(head);
    let sum = 0;
    for (let of = 0; of < this.nHeads; ++of) sum += at(of);
    return sum / this.nHeads;
  }

  /** Of every head in the row of `query`; undefined where it was never seen. */
  scores(query: number): readonly HeadScores[] | undefined {
    this.#scoreAll();
    return this.#scores[query];
  }

  /** Scores rows while there is time; whether none is left. */
  scoreWhile(hasTime: () => boolean): boolean {
    while (this.#unscored.length > 0 && hasTime()) this.#scoreNext();
    return this.#unscored.length === 0;
  }

  /** Of every head, the mean over the rows seen. */
  meanScores(): HeadScores[] {
    this.#scoreAll();
    return this.#running.map((running) => running.mean());
  }

  source(): MapSource {
    const replayedRows = this.#rows.reduce((n, row) => (row?.origin === 'replay' ? n + 1 : n), 0);
    if (this.whole) return { state: 'kept', replayedRows };
    this.#scoreAll();
    return { state: this.#scores.includes(undefined) ? 'never' : 'dropped', replayedRows };
  }

  #put(query: number, weights: Weights, origin: Origin, tokens: ArrayLike<number>): void {
    this.#rows[query] = { weights, origin };
    this.bytes += weights.byteLength;
    if (!this.#scores[query]) this.#unscored.push({ query, tokens });
    if (!this.#pooledRows.has(query)) this.#pool(query, weights);
  }

  // Called before any row goes, so that the rows still to be scored are there.
  #scoreAll(): void {
    while (this.#unscored.length > 0) this.#scoreNext();
  }

  #scoreNext(): void {
    const { query, tokens } = this.#unscored.shift()!;
    const { weights } = this.#rows[query]!;
    const keys = inductionKeys(tokens, query);
    const length = query + 1;
    const scores = Array.from({ length: this.nHeads }, (_, head) =>
      rowScores(weights.subarray(head * length, (head + 1) * length), keys),
    );
    this.#scores[query] = scores;
    this.#addRunning(query, scores);
  }

  #resetRunning(): void {
    this.#running = Array.from({ length: this.nHeads }, () => new RunningScores());
  }

  #addRunning(query: number, scores: readonly HeadScores[]): void {
    if (query > 0) scores.forEach((row, head) => this.#running[head]!.add(row));
  }

  #pool(query: number, weights: Weights): void {
    this.#pooledRows.add(query);
    const length = query + 1;
    const firstKey = this.slidingWindow > 0 ? Math.max(0, length - this.slidingWindow) : 0;
    for (let head = 0; head < this.nHeads; ++head) {
      this.pooled[head]!.add(query, weights.subarray(head * length, (head + 1) * length), firstKey);
    }
    this.pooled[this.nHeads]!.add(query, meanOverHeads(weights, this.nHeads), firstKey);
  }

  #grow(): void {
    const newest = this.#rows.at(-1);
    if (this.#dropped && newest) {
      this.#scoreAll();
      this.#rows[this.length - 1] = undefined;
      this.bytes -= newest.weights.byteLength;
    }
    this.#rows.push(undefined);
    this.#scores.push(undefined);
  }
}

/**
 * The row of `query`, as the history keeps it, out of a dense `[nHeads, nRows, nColumns]` where it
 * is row `row`.
 */
export function rowOfMap(
  map: Weights,
  nHeads: number,
  nColumns: number,
  query: number,
  row: number,
): Weights {
  const length = query + 1;
  const nRows = map.length / (nHeads * nColumns);
  const weights =
    map instanceof Float64Array
      ? new Float64Array(nHeads * length)
      : new Float32Array(nHeads * length);
  for (let head = 0; head < nHeads; ++head) {
    const start = (head * nRows + row) * nColumns;
    weights.set(map.subarray(start, start + length), head * length);
  }
  return weights;
}
