/**
 * The merging step that all byte pair encodings share: of all neighbours that may merge, the pair
 * of the lowest rank merges first, the leftmost of equals, until none is left. O(n log n).
 */

/** A computation in steps: it yields now and then, so that a caller can pause or stop it. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs a computation to its end. */
export function complete<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Ids are below this number. */
export const idLimit = 2 ** 24;
/** Ranks are below this number. */
export const rankLimit = 2 ** 21;

/**
 * The merge of two neighbouring symbols as `rank * idLimit + id`, `id` being the symbol that they
 * become; undefined if they do not merge.
 */
export type FindMerge = (left: number, right: number) => number | undefined;

const positionLimit = 2 ** 32; // rank * 2^32 + position is exact in a double

// Merges between two yields: some ten milliseconds.
const mergesPerStep = 1 << 14;

/** Merges `symbols`, which are ids of at least 0. */
export function* mergeSymbols(symbols: number[], find: FindMerge): Steps<number[]> {
  const count = symbols.length;
  if (count < 2) return symbols;
  const next = Int32Array.from(symbols, (_, i) => (i + 1 < count ? i + 1 : -1));
  const previous = Int32Array.from(symbols, (_, i) => i - 1);
  const queue = new MergeQueue();
  const offer = (left: number): void => {
    const right = left < 0 ? -1 : next[left]!;
    if (right < 0) return;
    const merge = find(symbols[left]!, symbols[right]!);
    if (merge === undefined) return;
    const id = merge % idLimit;
    queue.push(((merge - id) / idLimit) * positionLimit + left, id);
  };
  let steps = 0;
  for (let i = 0; i + 1 < count; ++i) {
    offer(i);
    if (++steps % (4 * mergesPerStep) === 0) yield;
  }
  while (queue.size > 0) {
    const left = queue.key % positionLimit;
    const id = queue.id;
    queue.pop();
    if (++steps % mergesPerStep === 0) yield;
    const right = next[left]!;
    // Either symbol may have merged into another one meanwhile.
    if (symbols[left]! < 0 || right < 0) continue;
    const merge = find(symbols[left]!, symbols[right]!);
    if (merge === undefined || merge % idLimit !== id) continue;
    symbols[left] = id;
    symbols[right] = -1;
    const after = next[right]!;
    next[left] = after;
    if (after >= 0) previous[after] = left;
    offer(previous[left]!);
    offer(left);
  }
  return symbols.filter((symbol) => symbol >= 0);
}

/** A binary heap of ids, smallest key first. */
class MergeQueue {
  private readonly keys: number[] = [];
  private readonly ids: number[] = [];

  get size(): number {
    return this.keys.length;
  }

  /** The smallest key. */
  get key(): number {
    return this.keys[0]!;
  }

  /** The id of the smallest key. */
  get id(): number {
    return this.ids[0]!;
  }

  push(key: number, id: number): void {
    const { keys, ids } = this;
    let at = keys.length;
    keys.push(key);
    ids.push(id);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (keys[parent]! <= key) break;
      keys[at] = keys[parent]!;
      ids[at] = ids[parent]!;
      at = parent;
    }
    keys[at] = key;
    ids[at] = id;
  }

  /** Removes the smallest key. */
  pop(): void {
    const { keys, ids } = this;
    const key = keys.pop()!;
    const id = ids.pop()!;
    const count = keys.length;
    if (count === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= count) break;
      if (child + 1 < count && keys[child + 1]! < keys[child]!) ++child;
      if (keys[child]! >= key) break;
      keys[at] = keys[child]!;
      ids[at] = ids[child]!;
      at = child;
    }
    keys[at] = key;
    ids[at] = id;
  }
}
