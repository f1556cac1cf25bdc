// The pixels of all thumbnails in one image: a slot of SIDE x SIDE for every head, layers below
// each other, the mean over heads last in its line. An appended row costs one line of pixels per
// thumbnail.
import type { AttentionStore } from './attention-store.js';
import { levelOf, niceMaximum } from './colour-scale.js';
import { rampPixels } from './palette.js';
import { NO_WEIGHT, SIDE, type PooledMap } from './pooled-map.js';
import type { HeadRef, MapStyle } from './types.js';

export class ThumbnailImage {
  readonly columns: number;
  readonly width: number;
  readonly height: number;
  /** RGBA, `[height, width]`. */
  readonly pixels: Uint32Array<ArrayBuffer>;
  /** The weight that has the last colour, in all thumbnails. */
  maximum = 1;

  // What each slot was drawn from: the epoch of its layer, the block and the number of positions.
  readonly #drawn: { epoch: number; block: number; length: number }[];
  #drawnAs = '';

  constructor(private readonly store: AttentionStore) {
    this.columns = store.nHeads + 1;
    this.width = this.columns * SIDE;
    this.height = store.nLayers * SIDE;
    this.pixels = new Uint32Array(this.width * this.height);
    this.#drawn = Array.from({ length: this.columns * store.nLayers }, () => ({
      epoch: -1,
      block: 0,
      length: 0,
    }));
  }

  /** The head whose thumbnail is in a column. */
  headAt(layer: number, column: number): HeadRef {
    return { layer, head: column === this.store.nHeads ? 'mean' : column };
  }

  /** Blocks along each side of the thumbnails of a layer. */
  blocks(layer: number): number {
    return Math.ceil(this.store.length / this.store.pooled({ layer, head: 0 }).block);
  }

  /**
   * The blocks of a layer whose rows were not captured, as SVG path data in units of a thumbnail's
   * side.
   */
  uncaptured(layer: number): string {
    const blocks = this.blocks(layer);
    const pooled = this.store.pooled({ layer, head: 0 });
    let path = '';
    for (let y = 0; y < blocks; ++y) {
      // A row that was captured has a weight on the diagonal.
      if (pooled.at(y, y, true) !== NO_WEIGHT) continue;
      const [top, right, bottom] = [y / blocks, (y + 1) / blocks, (y + 1) / blocks];
      path += `M0 ${top}H${right}V${bottom}H0Z`;
    }
    return path;
  }

  /**
   * Brings the pixels up to date. Returns the lines of the slots that may have changed, the same in
   * all of them.
   */
  update(style: MapStyle): { readonly from: number; readonly to: number } {
    let [first, last] = [SIDE, 0];
    const maximum = style.hideSink ? this.#largest() : 1;
    const drawnAs = [style.palette, style.scale, style.hideSink, maximum].join();
    const all = drawnAs !== this.#drawnAs;
    this.#drawnAs = drawnAs;
    this.maximum = maximum;
    const ramp = rampPixels(style.palette);
    const { store, columns } = this;
    for (let layer = 0; layer < store.nLayers; ++layer) {
      const epoch = store.pooledEpoch(layer);
      for (let column = 0; column < columns; ++column) {
        const pooled = store.pooled(this.headAt(layer, column));
        const drawn = this.#drawn[layer * columns + column]!;
        const whole =
          all ||
          drawn.epoch !== epoch ||
          drawn.block !== pooled.block ||
          drawn.length > store.length;
        const from = whole ? 0 : Math.floor(drawn.length / pooled.block);
        const to = whole ? SIDE : Math.ceil(store.length / pooled.block);
        if (from >= to) continue;
        [first, last] = [Math.min(first, from), Math.max(last, to)];
        for (let y = from; y < to; ++y) this.#drawLine(pooled, style, ramp, layer, column, y);
        Object.assign(drawn, { epoch, block: pooled.block, length: store.length });
      }
    }
    return { from: first, to: last };
  }

  #drawLine(
    pooled: PooledMap,
    style: MapStyle,
    ramp: Uint32Array,
    layer: number,
    column: number,
    y: number,
  ): void {
    const start = (layer * SIDE + y) * this.width + column * SIDE;
    for (let x = 0; x < SIDE; ++x) {
      const weight = pooled.at(y, x, !style.hideSink);
      this.pixels[start + x] =
        weight === NO_WEIGHT ? 0 : ramp[levelOf(style.scale, weight, this.maximum)]!;
    }
  }

  #largest(): number {
    let largest = 0;
    for (let layer = 0; layer < this.store.nLayers; ++layer) {
      for (let column = 0; column < this.columns; ++column) {
        largest = Math.max(largest, this.store.pooled(this.headAt(layer, column)).maximum);
      }
    }
    return niceMaximum(largest);
  }
}
