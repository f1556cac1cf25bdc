// Where the cells and the labels of the large map are, in CSS pixels; nothing here draws.
import type { AttentionMatrix, Cell } from './types.js';

/** Cells are no larger than this, so that short prompts do not become posters. */
const MAX_CELL = 30;
/**
 * From this many device pixels on a cell is a whole number of them, and so are all the same size.
 */
const WHOLE_PIXELS = 8;
/** Between two labels of an axis. */
export const LABEL_PITCH = 13;
/** Width of a character of the labels, 12 px monospaced. */
const CHARACTER = 7.3;
const LABEL_CHARACTERS = 14;

export interface MapLayout {
  /** Positions. */
  readonly length: number;
  /** Positions that share a pixel, along each side. */
  readonly block: number;
  /** Cells along each side, `length / block` rounded up. */
  readonly cells: number;
  /** Side of a cell; a fraction where cells are small. */
  readonly cell: number;
  /** Side of the map. */
  readonly side: number;
  /** Side of the map in device pixels. */
  readonly deviceSide: number;
}

/** Fits `length` rows and columns into a square of `available` CSS pixels. */
export function layoutMap(length: number, available: number, pixelRatio: number): MapLayout {
  const device = Math.max(1, Math.floor(available * pixelRatio));
  const block = Math.max(1, Math.ceil(length / device));
  const cells = Math.ceil(length / block);
  const fitting = Math.min(device / Math.max(1, cells), Math.round(MAX_CELL * pixelRatio));
  const deviceCell = fitting >= WHOLE_PIXELS ? Math.floor(fitting) : fitting;
  const deviceSide = Math.round(cells * deviceCell);
  return {
    length,
    block,
    cells,
    cell: deviceCell / pixelRatio,
    side: deviceSide / pixelRatio,
    deviceSide,
  };
}

/** The cell at a point of the map; in a block that of its largest weight. */
export function cellAt(
  layout: MapLayout,
  matrix: AttentionMatrix,
  x: number,
  y: number,
): Cell | null {
  const { block, cell, cells, length } = layout;
  const column = Math.floor(x / cell);
  const line = Math.floor(y / cell);
  if (column < 0 || line < 0 || column >= cells || line >= cells) return null;
  let best: Cell = {
    query: Math.min(line * block, length - 1),
    key: Math.min(column * block, length - 1),
  };
  let largest = -1;
  for (let query = line * block; query < Math.min((line + 1) * block, length); ++query) {
    const row = matrix.row(query);
    if (!row) continue;
    for (let key = column * block; key < Math.min((column + 1) * block, query + 1); ++key) {
      if (row[key]! <= largest) continue;
      largest = row[key]!;
      best = { query, key };
    }
  }
  return best;
}

/** The outline of the cells whose rows were not captured, as the data of an SVG path. */
export function uncapturedPath(
  { block, cell, cells, length }: MapLayout,
  { has, slidingWindow }: AttentionMatrix,
): string {
  let path = '';
  for (let line = 0; line < cells; ++line) {
    const first = line * block;
    const end = Math.min(first + block, length);
    let query = first;
    while (query < end && !has(query)) ++query;
    if (query < end) continue;
    const firstKey = slidingWindow === 0 ? 0 : Math.max(0, first - slidingWindow + 1);
    const left = Math.floor(firstKey / block) * cell;
    path += `M${left} ${line * cell}H${(line + 1) * cell}v${cell}H${left}Z`;
  }
  return path;
}

/** Where a cell is drawn. */
export function cellBox(
  { block, cell }: MapLayout,
  { query, key }: Cell,
): { x: number; y: number; side: number } {
  return { x: Math.floor(key / block) * cell, y: Math.floor(query / block) * cell, side: cell };
}

/** The middle of a position along either axis. */
export function tickAt({ block, cell }: MapLayout, position: number): number {
  return (Math.floor(position / block) + 0.5) * cell;
}

/**
 * Positions that are labelled: all of them, or every 2nd, 5th, 10th, 20th, ... where they would
 * collide.
 */
export function labelledPositions({ length, block, cell }: MapLayout): number[] {
  const pitch = cell / block;
  let step = 1;
  for (let power = 1; step * pitch < LABEL_PITCH; power *= 10) {
    step =
      [power, 2 * power, 5 * power].find((candidate) => candidate * pitch >= LABEL_PITCH) ??
      10 * power;
  }
  return Array.from({ length: Math.ceil(length / step) }, (_, i) => i * step);
}

/** A label that fits: `12 word`. */
export function axisLabel(position: number, token: string): string {
  const characters = [...token];
  const room = LABEL_CHARACTERS - String(position).length - 1;
  const shown = characters.length > room ? `${characters.slice(0, room - 1).join('')}…` : token;
  return `${position} ${shown}`;
}

/** Room that the labels of the longest of `tokens` take. */
export function labelWidth(tokens: readonly string[], length: number): number {
  let longest = 4;
  for (let position = 0; position < length && longest < LABEL_CHARACTERS; ++position) {
    longest = Math.max(longest, [...axisLabel(position, tokens[position] ?? '')].length);
  }
  return Math.ceil(longest * CHARACTER);
}

/** Labels of the columns lean by this angle, in degrees. */
export const LABEL_ANGLE = -50;

/** Height of leaning labels `width` long. */
export function leaningHeight(width: number): number {
  return Math.ceil(width * Math.sin((-LABEL_ANGLE * Math.PI) / 180)) + 10;
}
