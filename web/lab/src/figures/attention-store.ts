// The history of attention of one session, over all layers and heads, within a budget of memory.
//
// Exact rows are kept layer by layer. When they outgrow the budget, the layer that was in focus
// least recently drops its rows. The layer in focus always keeps them, whatever they take. A replay
// makes a layer whole again.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { Evidence, Tensor, TokenIds } from 'kvlens';
import type { HeadScores } from './head-stats.js';
import { LayerHistory, rowOfMap } from './layer-history.js';
import { SIDE, type PooledMap } from './pooled-map.js';
import type { AttentionMatrix, HeadRef, MapSource, Weights } from './types.js';

export const DEFAULT_BUDGET_BYTES = 64 * 2 ** 20;

export interface AttentionStoreOptions {
  readonly nLayers: number;
  readonly nHeads: number;
  /** Positions a row sees, itself included; 0 (the default): all. */
  readonly slidingWindow?: number;
  /** Of exact rows; 64 MiB by default. */
  readonly budgetBytes?: number;
}

/** Bytes of the dense evidence of one call, to decide what to capture. */
export function evidenceBytes(
  config: { readonly nLayers: number; readonly nHeads: number },
  firstPosition: number,
  nRows: number,
  compute: 'f32' | 'f64' = 'f32',
): number {
  return (
    config.nLayers * config.nHeads * nRows * (firstPosition + nRows) * (compute === 'f64' ? 8 : 4)
  );
}

export class AttentionStore {
  readonly nLayers: number;
  readonly nHeads: number;
  readonly slidingWindow: number;
  readonly budgetBytes: number;

  readonly #revision = signal(0);
  readonly #layers: readonly LayerHistory[];
  // Layers, the one in focus last.
  #focused: number[];
  #tokens: number[] = [];
  #idle = false;

  constructor({
    nLayers,
    nHeads,
    slidingWindow = 0,
    budgetBytes = DEFAULT_BUDGET_BYTES,
  }: AttentionStoreOptions) {
    this.nLayers = nLayers;
    this.nHeads = nHeads;
    this.slidingWindow = slidingWindow;
    this.budgetBytes = budgetBytes;
    this.#layers = Array.from({ length: nLayers }, () => new LayerHistory(nHeads, slidingWindow));
    this.#focused = this.#layers.map((_, layer) => nLayers - 1 - layer);
  }

  /** Moves with every change. */
  get revision(): ReadonlySignal<number> {
    return this.#revision;
  }

  /** Positions. */
  get length(): number {
    return this.#tokens.length;
  }

  /**
   * Takes in what one call appended; layers and rows that `evidence` lacks are known to be missing.
   */
  append(tokens: TokenIds, evidence?: Evidence): void {
    const first = this.length;
    const end = first + tokens.length;
    if (evidence && evidence.firstPosition + evidence.nRows !== end) {
      const evidenceEnd = evidence.firstPosition + evidence.nRows;
      throw new RangeError(
        `the evidence ends before position ${evidenceEnd}, the history before ${end}`,
      );
    }
    for (const token of tokens) this.#tokens.push(token);
    this.#layers.forEach((history, layer) => {
      const map = evidence && layerMap(evidence, layer);
      for (let query = first; query < end; ++query) {
        const row = query - (evidence?.firstPosition ?? end);
        if (map && row >= 0)
          history.append(rowOfMap(map, this.nHeads, end, query, row), this.#tokens);
        else history.appendUnseen();
      }
    });
    this.#changed();
  }

  /** Completes `layers` from `EngineSession.attentionMaps(layers)`. */
  addReplay(layers: readonly number[], maps: Tensor): void {
    const n = maps.shape[3] ?? 0;
    const size = this.nHeads * n * n;
    layers.forEach((layer, slot) => {
      this.#layers[layer]?.fill(
        maps.data.subarray(slot * size, (slot + 1) * size),
        n,
        this.#tokens,
      );
    });
    this.#changed();
  }

  /** Keeps the first `length` positions. */
  truncate(length: number): void {
    this.#tokens.length = Math.min(length, this.length);
    for (const history of this.#layers) history.truncate(length);
    this.#changed();
  }

  clear(): void {
    this.truncate(0);
  }

  /** The layer in view, which keeps its rows. */
  focus(layer: number): void {
    if (this.#focused.at(-1) === layer) return;
    this.#focused = [...this.#focused.filter((other) => other !== layer), layer];
  }

  matrix({ layer, head }: HeadRef): AttentionMatrix {
    const history = this.#layers[layer]!;
    return {
      id: `${layer}/${head}`,
      epoch: history.epoch,
      length: history.length,
      slidingWindow: this.slidingWindow,
      has: (query) => history.has(query),
      row: (query) => history.row(head, query),
    };
  }

  source(layer: number): MapSource {
    return this.#layers[layer]!.source();
  }

  /** What `position` gives to the positions up to it. */
  outgoing({ layer, head }: HeadRef, position: number): Weights | undefined {
    return this.#layers[layer]!.row(head, position);
  }

  /**
   * What every position gives to `position`, by query; NaN before `position`, where there is no
   * weight. Undefined if a row is missing.
   */
  incoming({ layer, head }: HeadRef, position: number): Float64Array | undefined {
    const weights = new Float64Array(this.length).fill(NaN);
    for (let query = position; query < this.length; ++query) {
      const weight = this.#layers[layer]!.weight(head, query, position);
      if (weight === undefined) return undefined;
      weights[query] = weight;
    }
    return weights;
  }

  /**
   * Of every head: the mean over the captured rows except row 0, or the scores of one row, which
   * are undefined if it was not captured.
   */
  scores(layer: number, query?: number): readonly HeadScores[] | undefined {
    const history = this.#layers[layer]!;
    return query === undefined ? history.meanScores() : history.scores(query);
  }

  /** Rows that the means of a layer are taken over. */
  rowsScored(layer: number): number {
    return this.#layers[layer]!.rowsScored;
  }

  /** Rows that the thumbnails of a layer show. */
  rowsPooled(layer: number): number {
    return this.#layers[layer]!.rowsPooled;
  }

  /** Layers whose thumbnails lack rows. */
  partialLayers(): number {
    return this.#layers.filter((history) => history.rowsPooled < this.length).length;
  }

  /** The thumbnail of a head. */
  pooled({ layer, head }: HeadRef): PooledMap {
    return this.#layers[layer]!.pooled[head === 'mean' ? this.nHeads : head]!;
  }

  /** Moves when thumbnails changed in other ways than by appended rows. */
  pooledEpoch(layer: number): number {
    return this.#layers[layer]!.epoch;
  }

  usage(): { bytes: number; budgetBytes: number; pooledBytes: number; keptLayers: number } {
    return {
      bytes: this.#bytes(),
      budgetBytes: this.budgetBytes,
      pooledBytes:
        this.nLayers * (this.nHeads + 1) * SIDE * (SIDE + 1) * Float32Array.BYTES_PER_ELEMENT,
      keptLayers: this.#layers.filter((history) => history.whole).length,
    };
  }

  /** Scores the layers that nobody looks at when there is nothing else to do. */
  #scoreWhenIdle(): void {
    if (this.#idle || typeof requestIdleCallback === 'undefined') return;
    this.#idle = true;
    requestIdleCallback((deadline) => {
      this.#idle = false;
      const hasTime = () => deadline.timeRemaining() > 0;
      if (!this.#layers.every((history) => history.scoreWhile(hasTime))) this.#scoreWhenIdle();
    });
  }

  #bytes(): number {
    return this.#layers.reduce((sum, history) => sum + history.bytes, 0);
  }

  #changed(): void {
    for (const layer of this.#focused.slice(0, -1)) {
      if (this.#bytes() <= this.budgetBytes) break;
      this.#layers[layer]!.drop();
    }
    this.#scoreWhenIdle();
    ++this.#revision.value;
  }
}

/** `[nHeads, nRows, nColumns]` of one layer of the evidence, if it was captured. */
function layerMap(evidence: Evidence, layer: number): Weights | undefined {
  const slot = evidence.layers.indexOf(layer);
  const size = evidence.attention.data.length / evidence.layers.length;
  return slot < 0 ? undefined : evidence.attention.data.subarray(slot * size, (slot + 1) * size);
}
