// Where the thumbnails are, in CSS pixels: layers below each other, the mean over heads last in its
// line.

/** Room for the names of the layers and of the columns. */
export const LEFT = 24;
export const TOP = 20;
const GAP = 4;
/** Between the last head and the mean. */
const MEAN_GAP = 10;
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
}

export function layoutThumbnails(
  nLayers: number,
  nHeads: number,
  available: number,
): ThumbnailLayout {
  const room = available - LEFT - RIGHT - MEAN_GAP - nHeads * GAP;
  const tile = Math.max(MIN_TILE, Math.min(MAX_TILE, Math.floor(room / (nHeads + 1))));
  const x = (column: number) => LEFT + column * (tile + GAP) + (column === nHeads ? MEAN_GAP : 0);
  const y = (layer: number) => TOP + layer * (tile + GAP);
  return { tile, x, y, width: x(nHeads) + tile + RIGHT, height: y(nLayers - 1) + tile };
}
