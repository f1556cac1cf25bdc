// The parts of the maps that need no canvas: pooling, colours, scales, pixels, places, keys.
import { describe, expect, test } from 'vitest';
import {
  levelOf,
  niceMaximum,
  scaled,
  unscaled,
} from '../../../web/lab/src/figures/colour-scale.js';
import { moveCell } from '../../../web/lab/src/figures/map-keys.js';
import { MapImage } from '../../../web/lab/src/figures/map-image.js';
import {
  axisLabel,
  cellAt,
  labelledPositions,
  layoutMap,
} from '../../../web/lab/src/figures/map-layout.js';
import { rampColour, rampCss, rampPixels } from '../../../web/lab/src/figures/palette.js';
import { NO_WEIGHT, PooledMap, SIDE } from '../../../web/lab/src/figures/pooled-map.js';
import { isMasked, type ScaleKind } from '../../../web/lab/src/figures/types.js';
import { matrixOf, plain, weightRow } from './matrices.js';

describe('ramps', () => {
  test('begin and end as published', () => {
    expect([rampCss('cividis', 0), rampCss('cividis', 255)]).toEqual(['#00224e', '#fee838']);
    expect([rampCss('inferno', 0), rampCss('inferno', 255)]).toEqual(['#000004', '#fcffa4']);
    expect([rampCss('greys', 0), rampCss('greys', 255)]).toEqual(['#ffffff', '#000000']);
  });
  test('have a middle as published', () => {
    expect(rampCss('cividis', 128)).toBe('#7d7c78');
    expect(rampCss('inferno', 128)).toBe('#bc3754');
  });
  test('change lightness in one direction alone', () => {
    const linear = (channel: number) =>
      channel <= 10 ? channel / 3294.6 : ((channel / 255 + 0.055) / 1.055) ** 2.4;
    const luminance = ([r, g, b]: readonly [number, number, number]) =>
      0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    for (const [palette, sign] of [
      ['cividis', 1],
      ['inferno', 1],
      ['greys', -1],
    ] as const) {
      for (let level = 4; level < 256; level += 4) {
        expect(
          sign *
            (luminance(rampColour(palette, level)) - luminance(rampColour(palette, level - 4))),
        ).toBeGreaterThan(0);
      }
    }
  });
  test('are opaque pixels in the order of image data', () => {
    expect([...new Uint8Array(rampPixels('cividis').buffer, 4 * 255, 4)]).toEqual([
      0xfe, 0xe8, 0x38, 255,
    ]);
  });
});

describe('scales', () => {
  test('meet at both ends', () => {
    for (const kind of ['linear', 'sqrt', 'log'] as const satisfies ScaleKind[]) {
      expect(levelOf(kind, 0, 1)).toBe(0);
      expect(levelOf(kind, 1, 1)).toBe(255);
      expect(levelOf(kind, 0.5, 0.5)).toBe(255);
    }
  });
  test('put a quarter at a quarter, a half and 1 - log10(4) / 4', () => {
    expect(scaled('linear', 0.25, 1)).toBe(0.25);
    expect(scaled('sqrt', 0.25, 1)).toBe(0.5);
    expect(scaled('log', 0.25, 1)).toBeCloseTo(1 - Math.log10(4) / 4, 12);
  });
  test('log shows four decades and is flat below', () => {
    expect(scaled('log', 1e-4, 1)).toBeCloseTo(0, 12);
    expect(scaled('log', 1e-7, 1)).toBe(0);
    expect(scaled('log', 0.01, 1)).toBeCloseTo(0.5, 12);
  });
  test('turn back', () => {
    for (const kind of ['linear', 'sqrt', 'log'] as const)
      expect(unscaled(kind, scaled(kind, 0.03, 0.5), 0.5)).toBeCloseTo(0.03, 12);
  });
  test('niceMaximum rounds up', () => {
    expect([0, 0.001, 0.0011, 0.19, 0.2, 0.21, 0.51, 1, 1.0000001].map(niceMaximum)).toEqual([
      0.001, 0.001, 0.002, 0.2, 0.2, 0.5, 1, 1, 1,
    ]);
  });
});

describe('PooledMap', () => {
  test('keeps weights as they are while they fit', () => {
    const pooled = new PooledMap();
    for (let query = 0; query < 3; ++query)
      pooled.add(query, Float32Array.from(weightRow(0, 0, query)), 0);
    expect(pooled.block).toBe(1);
    expect(pooled.at(2, 1, true)).toBe(weightRow(0, 0, 2)[1]);
    expect(pooled.at(2, 0, true)).toBe(weightRow(0, 0, 2)[0]);
    expect(pooled.at(2, 0, false)).toBe(NO_WEIGHT);
    expect(pooled.at(1, 2, true)).toBe(NO_WEIGHT);
  });
  test('holds the largest weight of each block, whatever the order of rows', () => {
    const length = 150;
    const forwards = new PooledMap();
    const backwards = new PooledMap();
    const row = (query: number) => Float32Array.from(weightRow(1, 2, query));
    for (let query = 0; query < length; ++query) forwards.add(query, row(query), 0);
    for (let query = length - 1; query >= 0; --query) backwards.add(query, row(query), 0);
    expect(forwards.block).toBe(4);
    expect(forwards.blocks).toEqual(backwards.blocks);
    for (const [y, x] of [
      [0, 0],
      [10, 3],
      [37, 37],
      [20, 20],
    ] as const) {
      let largest = NO_WEIGHT;
      for (let query = 4 * y; query < Math.min(length, 4 * y + 4); ++query) {
        for (let key = 4 * x; key <= Math.min(query, 4 * x + 3); ++key)
          largest = Math.max(largest, row(query)[key]!);
      }
      expect(forwards.at(y, x, true)).toBe(largest);
    }
  });
  test('leaves out what lies outside the window', () => {
    const pooled = new PooledMap();
    pooled.add(4, Float32Array.of(0, 0, 0.25, 0.25, 0.5), 2);
    expect(Array.from({ length: 5 }, (_, x) => pooled.at(4, x, true))).toEqual([
      NO_WEIGHT,
      NO_WEIGHT,
      0.25,
      0.25,
      0.5,
    ]);
    expect(pooled.blocks.length).toBe(SIDE * SIDE);
  });
});

describe('isMasked', () => {
  test('is the future, and what a window of 2 no longer sees', () => {
    expect(isMasked(2, 3, 0)).toBe(true);
    expect(isMasked(2, 2, 0)).toBe(false);
    expect([0, 1, 2].map((key) => isMasked(2, key, 2))).toEqual([true, false, false]);
  });
});

describe('MapImage', () => {
  const rows = [[1], [0.75, 0.25], [0.5, 0.25, 0.25], [0, 0.125, 0.375, 0.5]];
  const pixelsOf = (image: MapImage) =>
    Array.from({ length: image.size }, (_, y) => [
      ...image.pixels.subarray(y * image.capacity, y * image.capacity + image.size),
    ]);
  const ramp = rampPixels('cividis');
  const level = (weight: number) => ramp[Math.round(255 * weight)]!;

  test('has the colour of each weight, and nothing where there is none', () => {
    const image = new MapImage();
    image.update(matrixOf(rows), plain, 1);
    expect(pixelsOf(image)).toEqual([
      [level(1), 0, 0, 0],
      [level(0.75), level(0.25), 0, 0],
      [level(0.5), level(0.25), level(0.25), 0],
      [level(0), level(0.125), level(0.375), level(0.5)],
    ]);
    expect(level(0)).not.toBe(0);
  });
  test('draws an appended row alone', () => {
    const image = new MapImage();
    image.update(matrixOf(rows.slice(0, 3)), plain, 1);
    const whole = new MapImage();
    whole.update(matrixOf(rows), plain, 1);
    const asked: number[] = [];
    const matrix = matrixOf(rows);
    const watched = { ...matrix, row: (query: number) => (asked.push(query), matrix.row(query)) };
    expect(image.update(watched, plain, 1)).toEqual({ from: 3, to: 4 });
    expect(asked).toEqual([3]);
    expect(pixelsOf(image)).toEqual(pixelsOf(whole));
    expect(image.update(watched, plain, 1)).toEqual({ from: 4, to: 4 });
  });
  test('starts again when rows changed', () => {
    const image = new MapImage();
    image.update(matrixOf(rows), plain, 1);
    const changed = { ...matrixOf([[1], [0.5, 0.5]]), epoch: 1 };
    expect(image.update(changed, plain, 1)).toEqual({ from: 0, to: 2 });
    expect(pixelsOf(image)).toEqual([
      [level(1), 0],
      [level(0.5), level(0.5)],
    ]);
  });
  test('without the sink leaves column 0 out and fits the colours to the rest', () => {
    const image = new MapImage();
    image.update(matrixOf(rows.slice(0, 3)), { ...plain, hideSink: true }, 1);
    expect(image.maximum).toBe(0.5);
    expect(pixelsOf(image)[2]).toEqual([0, level(0.5), level(0.5)]);
    image.update(matrixOf([...rows, [0, 0, 0, 0.375, 0.625]]), { ...plain, hideSink: true }, 1);
    expect(image.maximum).toBe(1);
    expect(pixelsOf(image)[2]).toEqual([0, level(0.25), level(0.25), 0, 0]);
  });
  test('shows the largest weight of a block', () => {
    const image = new MapImage();
    image.update(matrixOf(rows), plain, 2);
    expect(pixelsOf(image)).toEqual([
      [level(1), 0],
      [level(0.5), level(0.5)],
    ]);
  });
  test('leaves rows that are missing and keys outside the window empty', () => {
    const image = new MapImage();
    image.update(matrixOf([[1], undefined, [0, 0.5, 0.5]], 2), plain, 1);
    expect(pixelsOf(image)).toEqual([
      [level(1), 0, 0],
      [0, 0, 0],
      [0, level(0.5), level(0.5)],
    ]);
  });
  test('grows past its first buffer', () => {
    const image = new MapImage();
    const long = Array.from({ length: 70 }, (_, query) => weightRow(0, 0, query));
    for (let length = 1; length <= 70; ++length)
      image.update(matrixOf(long.slice(0, length)), plain, 1);
    const whole = new MapImage();
    whole.update(matrixOf(long), plain, 1);
    expect(pixelsOf(image)).toEqual(pixelsOf(whole));
  });
});

describe('layoutMap', () => {
  test('cells of few positions are whole device pixels, and not larger than a label needs', () => {
    expect(layoutMap(4, 500, 1)).toEqual({
      length: 4,
      block: 1,
      cells: 4,
      cell: 30,
      side: 120,
      deviceSide: 120,
    });
    expect(layoutMap(32, 500, 1).cell).toBe(15);
    expect(layoutMap(32, 500, 2).cell).toBe(15.5);
  });
  test('more positions than pixels share them', () => {
    const layout = layoutMap(1024, 600, 1);
    expect([layout.block, layout.cells, layout.deviceSide]).toEqual([2, 512, 600]);
  });
  test('labels keep their distance, at round positions', () => {
    expect(labelledPositions(layoutMap(6, 500, 1))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(labelledPositions(layoutMap(100, 700, 1)).slice(0, 4)).toEqual([0, 2, 4, 6]);
    expect(labelledPositions(layoutMap(1024, 600, 1)).slice(0, 3)).toEqual([0, 50, 100]);
  });
  test('a label is cut to what fits', () => {
    expect(axisLabel(7, '·the')).toBe('7 ·the');
    expect(axisLabel(123, '·extraordinarily')).toBe('123 ·extraord…');
  });
  test('cellAt finds the cell under a point, and the largest weight of a block', () => {
    const matrix = matrixOf([[1], [0.75, 0.25], [0.5, 0.25, 0.25], [0, 0.125, 0.375, 0.5]]);
    const layout = layoutMap(4, 500, 1);
    expect(cellAt(layout, matrix, 31, 95)).toEqual({ query: 3, key: 1 });
    expect(cellAt(layout, matrix, 119.9, 0)).toEqual({ query: 0, key: 3 });
    expect(cellAt(layout, matrix, 120, 0)).toBeNull();
    const pooled = { ...layout, block: 2, cells: 2, cell: 60 };
    expect(cellAt(pooled, matrix, 70, 70)).toEqual({ query: 3, key: 3 });
    expect(cellAt(pooled, matrix, 10, 70)).toEqual({ query: 2, key: 0 });
  });
});

describe('moveCell', () => {
  const press = (key: string, ctrlKey = false) => ({ key, ctrlKey, metaKey: false });
  test('starts at the newest cell', () => {
    expect(moveCell(null, press('ArrowUp'), 5)).toEqual({ query: 4, key: 4 });
  });
  test('moves, and stays where cells have weights', () => {
    const at = { query: 2, key: 2 };
    expect(moveCell(at, press('ArrowUp'), 5)).toEqual({ query: 1, key: 1 });
    expect(moveCell(at, press('ArrowDown'), 5)).toEqual({ query: 3, key: 2 });
    expect(moveCell(at, press('ArrowLeft'), 5)).toEqual({ query: 2, key: 1 });
    expect(moveCell(at, press('ArrowRight'), 5)).toEqual({ query: 2, key: 2 });
    expect(moveCell({ query: 4, key: 0 }, press('ArrowDown'), 5)).toEqual({ query: 4, key: 0 });
    expect(moveCell({ query: 0, key: 0 }, press('ArrowLeft'), 5)).toEqual({ query: 0, key: 0 });
  });
  test('Home and End go along the row, with Ctrl over the map', () => {
    const at = { query: 3, key: 1 };
    expect(moveCell(at, press('Home'), 5)).toEqual({ query: 3, key: 0 });
    expect(moveCell(at, press('End'), 5)).toEqual({ query: 3, key: 3 });
    expect(moveCell(at, press('Home', true), 5)).toEqual({ query: 0, key: 0 });
    expect(moveCell(at, press('End', true), 5)).toEqual({ query: 4, key: 4 });
    expect(moveCell(at, press('PageUp'), 50)).toEqual({ query: 0, key: 0 });
    expect(moveCell(at, press('PageDown'), 50)).toEqual({ query: 13, key: 1 });
  });
  test('leaves other keys alone', () => {
    expect(moveCell({ query: 1, key: 1 }, press('a'), 5)).toBeNull();
    expect(moveCell(null, press('ArrowUp'), 0)).toBeNull();
  });
});
