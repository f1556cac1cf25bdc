// Where the thumbnails are, in CSS pixels: layers below each other, the mean over heads last in its
// line.

/** Room for the names of the layers and of the columns. */
export const LEFT = 24;
export const TOP = 20;
const GAP = 4;
/** Between the last head and the mean. */
const MEAN_GAP = 10;
/** Room for the name of the mean, which is longer than the numbers of the heads. */
const MEAN_NAME = 32;
/** For the ring around a chosen thumbnail. */
const RIGHT = 4;
const MIN_TILE = 24;
const MAX_TILE = 76;

/** Where the thumbnails are, in CSS pixels. */
export interface ThumbnailLayout {
  readonly tile: number;
  readonly width: number;
  readonly height: number;
  x(column: number): number;
  y(layer: number): number;
  /** Where the name of a column has its place, with the thumbnails below its middle. */
  name(column: number): { readonly x: number; readonly width: number };
}

export function layoutThumbnails(
  nLayers: number,
  nHeads: number,
  available: number,
): ThumbnailLayout {
  const room = available - LEFT - RIGHT - MEAN_GAP - nHeads * GAP;
  const equal = room / (nHeads + 1);
  const fitting = equal < MEAN_NAME ? (room - MEAN_NAME) / nHeads : equal;
  const tile = Math.max(MIN_TILE, Math.min(MAX_TILE, Math.floor(fitting)));
  const meanWidth = Math.max(tile, MEAN_NAME);
  const meanX = LEFT + nHeads * (tile + GAP) + MEAN_GAP;
  const x = (column: number) =>
    column === nHeads ? meanX + Math.floor((meanWidth - tile) / 2) : LEFT + column * (tile + GAP);
  const y = (layer: number) => TOP + layer * (tile + GAP);
  const name = (column: number) =>
    column === nHeads ? { x: meanX, width: meanWidth } : { x: x(column), width: tile };
  return { tile, x, y, name, width: meanX + meanWidth + RIGHT, height: y(nLayers - 1) + tile };
}
