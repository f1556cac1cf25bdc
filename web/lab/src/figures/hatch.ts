// The hatching of cells without a weight, for canvases and SVG; styles have it as `.kv-hatched`.
import type { FigureTheme } from './theme.js';

/** Side of the tile that repeats. */
const TILE = 6;

export function hatchPattern(context: CanvasRenderingContext2D, theme: FigureTheme): CanvasPattern {
  const tile = document.createElement('canvas');
  tile.width = tile.height = TILE;
  const pen = tile.getContext('2d')!;
  pen.fillStyle = theme.masked;
  pen.fillRect(0, 0, TILE, TILE);
  pen.strokeStyle = theme.line;
  pen.beginPath();
  // The second and third strokes are what a neighbouring tile's stroke leaves in the corners.
  for (const shift of [0, -TILE, TILE]) {
    pen.moveTo(shift - 1, TILE + 1);
    pen.lineTo(shift + TILE + 1, -1);
  }
  pen.stroke();
  return context.createPattern(tile, 'repeat')!;
}

/** `<pattern>` to fill with `url(#id)`. */
export function hatchSvg(id: string, theme: FigureTheme): string {
  return (
    `<pattern id="${id}" width="${TILE}" height="${TILE}" patternUnits="userSpaceOnUse">` +
    `<rect width="${TILE}" height="${TILE}" fill="${theme.masked}"/>` +
    `<path d="M-1 ${TILE + 1}L${TILE + 1} -1M-1 1L1 -1M${TILE - 1} ${TILE + 1}L${TILE + 1} ${TILE - 1}" stroke="${theme.line}"/>` +
    `</pattern>`
  );
}
