// The pixels of a large map, one per cell: kept between drawings, so that an appended row costs its
// own cells and nothing else.
import { levelOf, niceMaximum, rowMaximum } from './colour-scale.js';
import { LEVELS, rampPixels } from './palette.js';
import { isMasked, type AttentionMatrix, type MapStyle } from './types.js';

/** In place of a level: the cell has no weight. It stays transparent. */
const NONE = -1;

/** Rows of the image from `from` to before `to` changed. */
export interface Changed {
  readonly from: number;
  readonly to: number;
}

export class MapImage {
  /** Pixels along each side of the buffer; the image is its upper left part. */
  capacity = 0;
  /** Cells along each side. */
  size = 0;
  /**
   * The weight that has the last colour. 1, so that all maps compare; with the sink hidden a round
   * number just above the largest weight left, since without column 0 most maps are faint.
   */
  maximum = 1;
  /** RGBA, `[capacity, capacity]`. */
  pixels: Uint32Array<ArrayBuffer> = new Uint32Array(0);

  // Levels 0..255 or NONE, as pixels.
  #levels = new Int16Array(0);
  #ramp: Uint32Array = new Uint32Array(LEVELS);
  #drawnAs = '';
  #rows = 0;
  #largest = 0;

  /** Brings the pixels up to date with the matrix. */
  update(matrix: AttentionMatrix, style: MapStyle, block: number): Changed {
    const drawnAs = [
      matrix.id,
      matrix.epoch,
      style.palette,
      style.scale,
      style.hideSink,
      block,
    ].join();
    const size = Math.ceil(matrix.length / block);
    if (drawnAs !== this.#drawnAs || matrix.length < this.#rows || size > this.capacity) {
      this.#drawnAs = drawnAs;
      this.#ramp = rampPixels(style.palette);
      this.#largest = 0;
      this.#clear(size);
    }
    const maximum = style.hideSink ? this.#maximumWith(matrix) : 1;
    if (maximum !== this.maximum) {
      this.maximum = maximum;
      this.#clear(size);
    }
    const from = Math.floor(this.#rows / block);
    for (; this.#rows < matrix.length; ++this.#rows)
      this.#drawRow(matrix, style, block, this.#rows);
    this.size = size;
    return { from, to: size };
  }

  #clear(size: number): void {
    this.#rows = 0;
    if (size > this.capacity) {
      this.capacity = Math.max(64, 2 ** Math.ceil(Math.log2(size)));
      const area = this.capacity * this.capacity;
      this.pixels = new Uint32Array(area);
      this.#levels = new Int16Array(area);
    }
    this.pixels.fill(0);
    this.#levels.fill(NONE);
  }

  #maximumWith(matrix: AttentionMatrix): number {
    for (let query = this.#rows; query < matrix.length; ++query) {
      this.#largest = Math.max(this.#largest, rowMaximum(matrix.row(query)));
    }
    return niceMaximum(this.#largest);
  }

  #drawRow(
    matrix: AttentionMatrix,
    { scale, hideSink }: MapStyle,
    block: number,
    query: number,
  ): void {
    const row = matrix.row(query);
    if (!row) return;
    const start = Math.floor(query / block) * this.capacity;
    for (let key = hideSink ? 1 : 0; key <= query; ++key) {
      if (isMasked(query, key, matrix.slidingWindow)) continue;
      const at = start + Math.floor(key / block);
      const level = levelOf(scale, row[key]!, this.maximum);
      if (level <= this.#levels[at]!) continue;
      this.#levels[at] = level;
      this.pixels[at] = this.#ramp[level]!;
    }
  }
}
