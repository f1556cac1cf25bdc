// A whole attention map in at most SIDE x SIDE numbers: each is the largest weight of a square
// block, so that a thin line (the previous token, say) stays visible at any length. One row is
// added in O(row); when the map outgrows its side, blocks double.
import type { Weights } from './types.js';

/** Blocks along each side, at most. */
export const SIDE = 64;

/**
 * In place of a weight where a block has none: it lies in the future, outside the window, or was
 * not seen.
 */
export const NO_WEIGHT = -1;

export class PooledMap {
  /** Largest weight of each block, column 0 of the map left out; `[SIDE, SIDE]`. */
  readonly blocks = new Float32Array(SIDE * SIDE).fill(NO_WEIGHT);
  /** Largest weight that the rows of a block give to column 0. */
  readonly sink = new Float32Array(SIDE).fill(NO_WEIGHT);
  /** Positions a block covers along each side, a power of two. */
  block = 1;
  /** Largest weight seen, column 0 left out. */
  maximum = 0;

  /** Takes in the row of position `query`; `firstKey` is the first key that it sees. */
  add(query: number, row: Weights, firstKey: number): void {
    while (query >= SIDE * this.block) this.#halve();
    const { block, blocks, sink } = this;
    const y = Math.floor(query / block);
    if (firstKey === 0) sink[y] = Math.max(sink[y]!, row[0]!);
    for (let key = Math.max(1, firstKey); key <= query;) {
      const x = Math.floor(key / block);
      const end = Math.min(query + 1, (x + 1) * block);
      let largest = blocks[y * SIDE + x]!;
      for (; key < end; ++key) largest = Math.max(largest, row[key]!);
      blocks[y * SIDE + x] = largest;
      this.maximum = Math.max(this.maximum, largest);
    }
  }

  /** The largest weight of a block; without the sink the first column may have none. */
  at(y: number, x: number, withSink: boolean): number {
    const weight = this.blocks[y * SIDE + x]!;
    return withSink && x === 0 ? Math.max(weight, this.sink[y]!) : weight;
  }

  clear(): void {
    this.blocks.fill(NO_WEIGHT);
    this.sink.fill(NO_WEIGHT);
    this.block = 1;
    this.maximum = 0;
  }

  #halve(): void {
    const { blocks, sink } = this;
    const pooled = new Float32Array(SIDE * SIDE).fill(NO_WEIGHT);
    for (let y = 0; y < SIDE; ++y) {
      for (let x = 0; x < SIDE; ++x) {
        const at = (y >> 1) * SIDE + (x >> 1);
        pooled[at] = Math.max(pooled[at]!, blocks[y * SIDE + x]!);
      }
    }
    blocks.set(pooled);
    for (let y = 0; y < SIDE / 2; ++y) sink[y] = Math.max(sink[2 * y]!, sink[2 * y + 1]!);
    sink.fill(NO_WEIGHT, SIDE / 2);
    this.block *= 2;
  }
}
