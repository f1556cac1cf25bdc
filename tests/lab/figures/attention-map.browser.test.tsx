import { useState } from 'preact/hooks';
import { expect, test, vi } from 'vitest';
import { userEvent } from 'vitest/browser';
import {
  AttentionMap,
  type AttentionMapProps,
} from '../../../web/lab/src/figures/attention-map.js';
import { MapControls } from '../../../web/lab/src/figures/map-controls.js';
import { rampCss } from '../../../web/lab/src/figures/palette.js';
import type { Cell, MapStyle, Palette } from '../../../web/lab/src/figures/types.js';
import { figures as en } from '../../../web/lab/src/i18n/en-figures.js';
import { matrixOf, plain, weightRow } from './matrices.js';
import { expectAccessible, mount, pixel } from './mount.js';

const rows = [[1], [0.75, 0.25], [0.5, 0.25, 0.25], [0, 0.125, 0.375, 0.5]];
const tokens = ['<s>', '·a', 'b', '·c', '·d'];
/** 4 rows in 640 px have the largest cells, 30 px. */
const CELL = 30;

const props: AttentionMapProps = {
  matrix: matrixOf(rows),
  head: { layer: 0, head: 1 },
  source: { state: 'kept', replayedRows: 0 },
  tokens,
  mapStyle: plain,
  messages: en,
  pinned: null,
  onPin: () => {},
};

/** The map with a page that keeps the pinned cell. */
function Page(over: Partial<AttentionMapProps>) {
  const [pinned, setPinned] = useState<Cell | null>(null);
  return (
    <AttentionMap
      {...props}
      {...over}
      pinned={pinned}
      onPin={(cell) => {
        setPinned(cell);
        over.onPin?.(cell);
      }}
    />
  );
}

const grid = (container: HTMLElement) => container.querySelector<HTMLElement>('[role="grid"]')!;
const canvasOf = (container: HTMLElement) => container.querySelector('canvas')!;
const readout = (container: HTMLElement) => container.querySelector('.kv-readout')!.textContent;
const colours = (container: HTMLElement, n: number, cell = CELL) =>
  Array.from({ length: n }, (_, query) =>
    Array.from({ length: n }, (_, key) =>
      pixel(canvasOf(container), (key + 0.5) * cell, (query + 0.5) * cell),
    ),
  );
const at = (query: number, key: number) => ({
  position: { x: (key + 0.5) * CELL, y: (query + 0.5) * CELL },
});

const level = (palette: Palette, place: number) => rampCss(palette, Math.round(255 * place));

test('every cell has exactly the colour of its weight, future cells none', async () => {
  for (const palette of ['cividis', 'inferno', 'greys'] as const) {
    const { container } = await mount(<AttentionMap {...props} mapStyle={{ ...plain, palette }} />);
    const c = (weight: number) => level(palette, weight);
    expect(colours(container, 4)).toEqual([
      [c(1), 'none', 'none', 'none'],
      [c(0.75), c(0.25), 'none', 'none'],
      [c(0.5), c(0.25), c(0.25), 'none'],
      [c(0), c(0.125), c(0.375), c(0.5)],
    ]);
  }
});

test('cells fill the map to its edges', async () => {
  const { container } = await mount(<AttentionMap {...props} />);
  const canvas = canvasOf(container);
  expect([canvas.width, canvas.height]).toEqual([4 * CELL, 4 * CELL]);
  expect([
    pixel(canvas, 0, 90),
    pixel(canvas, 29, 119),
    pixel(canvas, 30, 119),
    pixel(canvas, 119, 119),
  ]).toEqual([
    level('cividis', 0),
    level('cividis', 0),
    level('cividis', 0.125),
    level('cividis', 0.5),
  ]);
});

test('square root and logarithm change the colours as they say', async () => {
  const { container, update } = await mount(
    <AttentionMap {...props} mapStyle={{ ...plain, scale: 'sqrt' }} />,
  );
  expect(colours(container, 4)[2]![1]).toBe(level('cividis', 0.5));
  await update(<AttentionMap {...props} mapStyle={{ ...plain, scale: 'log' }} />);
  expect(colours(container, 4)[2]![1]).toBe(level('cividis', 1 + Math.log10(0.25) / 4));
  expect(colours(container, 4)[3]![0]).toBe(level('cividis', 0));
  expect(container.querySelector('.kv-legend')!.textContent).toContain('≤ 1e−4');
});

test('without the sink column 0 is empty, the colours fit the rest, and the legend says both', async () => {
  const { container } = await mount(<Page mapStyle={{ ...plain, hideSink: true }} />);
  const c = (weight: number) => level('cividis', weight / 0.5);
  expect(colours(container, 4)).toEqual([
    ['none', 'none', 'none', 'none'],
    ['none', c(0.25), 'none', 'none'],
    ['none', c(0.25), c(0.25), 'none'],
    ['none', c(0.125), c(0.375), c(0.5)],
  ]);
  const legend = container.querySelector('.kv-legend')!.textContent;
  expect(legend).toContain('position 0 hidden');
  expect(legend).toContain('0.5');
  await userEvent.hover(grid(container), at(2, 0));
  expect(readout(container)).toContain('0.5 (column hidden)');
});

test('an appended row is drawn below the others', async () => {
  const long = Array.from({ length: 30 }, (_, query) => weightRow(0, 0, query));
  // 30 cells fill the width, so that the appended row changes the size of all.
  const { container, update } = await mount(
    <AttentionMap {...props} matrix={matrixOf(long.slice(0, 29))} />,
  );
  await update(<AttentionMap {...props} matrix={matrixOf(long)} />);
  const side = canvasOf(container).width / 30;
  long.forEach((row, query) => {
    expect(pixel(canvasOf(container), (query + 0.5) * side, (query + 0.5) * side)).toBe(
      level('cividis', row[query]!),
    );
  });
  await update(<AttentionMap {...props} matrix={matrixOf(long.slice(0, 3))} />);
  expect(colours(container, 3)[2]).toEqual(long[2]!.map((weight) => level('cividis', weight)));
});

test('both axes name the tokens', async () => {
  const { container } = await mount(<AttentionMap {...props} />);
  const ticks = [...container.querySelectorAll('.kv-tick')].map((tick) => tick.textContent);
  expect(ticks).toEqual(['0 <s>', '1 ·a', '2 b', '3 ·c', '0 <s>', '1 ·a', '2 b', '3 ·c']);
});

test('hovering previews, clicking pins, Escape releases', async () => {
  const onPreview = vi.fn();
  const onPin = vi.fn();
  const onAnnounce = vi.fn();
  const { container } = await mount(
    <Page onPreview={onPreview} onPin={onPin} onAnnounce={onAnnounce} />,
  );
  expect(readout(container)).toBe(en.map.hint);

  await userEvent.hover(grid(container), at(3, 2));
  expect(readout(container)).toBe('3 ·c → 2 b: 0.375');
  expect(onPreview).toHaveBeenLastCalledWith({ query: 3, key: 2 });
  expect(onAnnounce).toHaveBeenLastCalledWith('3 ·c → 2 b: 0.375');
  expect(onPin).not.toHaveBeenCalled();

  await userEvent.click(grid(container), at(3, 2));
  expect(onPin).toHaveBeenLastCalledWith({ query: 3, key: 2 });
  await userEvent.hover(document.body, { position: { x: 700, y: 5 } });
  expect(readout(container)).toContain('3 ·c → 2 b: 0.375 · pinned');
  expect(container.querySelector('.kv-cell-pinned')).not.toBeNull();

  await userEvent.keyboard('{Escape}');
  expect(onPin).toHaveBeenLastCalledWith(null);
  expect(onAnnounce).toHaveBeenLastCalledWith('Released');
  expect(readout(container)).toBe(en.map.hint);
});

test('a second click on the pinned cell releases it too', async () => {
  const { container } = await mount(<Page />);
  await userEvent.click(grid(container), at(1, 0));
  await userEvent.click(grid(container), at(1, 0));
  expect(container.querySelector('.kv-cell-pinned')).toBeNull();
});

test('cells of the future say that they have no weight', async () => {
  const { container } = await mount(<Page />);
  await userEvent.hover(grid(container), at(0, 3));
  expect(readout(container)).toBe('0 <s> → 3 ·c: no weight, this key comes after the query');
});

test('arrows, Home and End move the selected cell and read it out exactly', async () => {
  const onAnnounce = vi.fn();
  const third = Math.fround(1 / 3);
  const matrix = {
    ...matrixOf(rows),
    row: (query: number) =>
      query === 2 ? Float32Array.of(0.5, third, 0.25) : matrixOf(rows).row(query),
  };
  const { container } = await mount(<Page matrix={matrix} onAnnounce={onAnnounce} />);
  await userEvent.tab();
  expect(document.activeElement).toBe(grid(container));
  const press = async (key: string) => {
    await userEvent.keyboard(key);
    return readout(container)!.split(' · ')[0];
  };
  expect(await press('{ArrowDown}')).toBe('3 ·c → 3 ·c: 0.5');
  expect(await press('{ArrowUp}')).toBe('2 b → 2 b: 0.25');
  expect(await press('{ArrowLeft}')).toBe('2 b → 1 ·a: 0.33333334');
  expect(Math.fround(0.33333334)).toBe(third);
  expect(await press('{Home}')).toBe('2 b → 0 <s>: 0.5');
  expect(await press('{End}')).toBe('2 b → 2 b: 0.25');
  expect(await press('{ArrowRight}')).toBe('2 b → 2 b: 0.25');
  expect(onAnnounce).toHaveBeenLastCalledWith('2 b → 2 b: 0.25');

  const cell = document.getElementById(grid(container).getAttribute('aria-activedescendant')!)!;
  expect(cell.getAttribute('role')).toBe('gridcell');
  expect([cell.parentElement!.ariaRowIndex, cell.ariaColIndex, cell.ariaSelected]).toEqual([
    '3',
    '3',
    'true',
  ]);
  expect(cell.textContent).toBe('2 b → 2 b: 0.25');
});

test('a map with missing rows says why and offers to recompute it', async () => {
  const onRecompute = vi.fn();
  const { container } = await mount(
    <AttentionMap
      {...props}
      matrix={matrixOf([undefined, undefined, undefined, rows[3]])}
      source={{ state: 'dropped', replayedRows: 0 }}
      onRecompute={onRecompute}
    />,
  );
  expect(container.textContent).toContain('Older rows of this layer were dropped to save memory.');
  await userEvent.click(container.querySelector('button')!);
  expect(onRecompute).toHaveBeenCalledOnce();
  expect(colours(container, 4)[1]).toEqual(['none', 'none', 'none', 'none']);
});

test('a row that was not captured is dotted and named so, unlike a key of the future', async () => {
  const { container } = await mount(
    <AttentionMap
      {...props}
      matrix={matrixOf([rows[0], undefined, undefined, rows[3]])}
      source={{ state: 'never', replayedRows: 0 }}
    />,
  );
  const dotted = container.querySelector('.kv-map-axes path[fill="url(#kv-dots)"]')!;
  // Rows 1 and 2 up to their own keys, in cells of 30 px.
  expect(dotted.getAttribute('d')).toBe('M0 30H60v30H0ZM0 60H90v30H0Z');
  expect(container.querySelector('.kv-map-axes rect[fill="url(#kv-hatch)"]')).not.toBeNull();
  const legend = container.querySelector('.kv-legend')!;
  expect(legend.textContent).toContain('not captured');
  expect(legend.textContent).toContain('no weight (future)');
  await userEvent.hover(grid(container), at(1, 0));
  expect(readout(container)).toBe('1 ·a → 0 <s>: not captured');
  await userEvent.hover(grid(container), at(1, 3));
  expect(readout(container)).toBe('1 ·a → 3 ·c: no weight, this key comes after the query');
});

test('the row of the selected position is framed', async () => {
  const { container } = await mount(<AttentionMap {...props} selected={2} />);
  const { style } = container.querySelector<HTMLElement>('.kv-row')!;
  expect([style.top, style.width, style.height]).toEqual(['60px', '90px', '30px']);
  expect(container.querySelector('.kv-tick-active')!.textContent).toBe('2 b');
});

test('rows that a replay brought are told', async () => {
  const { container } = await mount(
    <AttentionMap {...props} source={{ state: 'kept', replayedRows: 3 }} />,
  );
  expect(container.textContent).toContain('3 of 4 rows recomputed by a replay');
});

test('without rows there is a sentence instead of a map', async () => {
  const { container } = await mount(<AttentionMap {...props} matrix={matrixOf([])} />);
  expect(container.querySelector('canvas')).toBeNull();
  expect(container.textContent).toContain(en.map.empty);
});

test('more positions than pixels: a pixel is the largest of its block, and the caption says so', async () => {
  const n = 600;
  const one = Array.from({ length: n }, (_, query) =>
    Array.from({ length: query + 1 }, (_, key) => (key === query - 1 ? 1 : 0)),
  );
  const { container } = await mount(
    <Page matrix={matrixOf(one)} tokens={one.map((_, i) => `t${i}`)} />,
    { width: 400 },
  );
  expect(container.textContent).toContain('Each pixel is the largest of 2 × 2 weights.');
  const canvas = canvasOf(container);
  const middle = Math.floor(canvas.width / 2);
  expect(pixel(canvas, middle, middle)).toBe(level('cividis', 1));
  await userEvent.hover(grid(container), { position: { x: middle, y: middle } });
  expect(readout(container)).toMatch(/: 1$/);
});

test('fits a narrow page', async () => {
  const long = Array.from({ length: 40 }, (_, query) => weightRow(0, 0, query));
  const { container } = await mount(<AttentionMap {...props} matrix={matrixOf(long)} />, {
    width: 300,
  });
  expect(
    container.querySelector('.kv-map-body')!.getBoundingClientRect().width,
  ).toBeLessThanOrEqual(300);
});

test.each(['light', 'dark'])('has nothing that axe finds in the %s theme', async (theme) => {
  const { container } = await mount(<Page />, { theme });
  await userEvent.click(grid(container), at(2, 1));
  await expectAccessible(container);
});

test('controls choose ramp, scale and sink, and say what hiding the sink hides', async () => {
  let style: MapStyle = plain;
  const controls = () => (
    <MapControls mapStyle={style} onChange={(next) => (style = next)} messages={en} />
  );
  const { container, update } = await mount(controls());
  await expectAccessible(container);
  const choose = async (name: string) => {
    const label = [...container.querySelectorAll('label')].find(
      ({ textContent }) => textContent?.trim() === name,
    )!;
    await userEvent.click(label.querySelector('input')!);
    await update(controls());
  };
  await choose('inferno');
  await choose('logarithmic');
  await choose('Hide sink');
  expect(style).toEqual({ palette: 'inferno', scale: 'log', hideSink: true });
  const sink = container.querySelector<HTMLInputElement>('[role="switch"]')!;
  expect(document.getElementById(sink.getAttribute('aria-describedby')!)!.textContent).toContain(
    'column 0',
  );
  expect(sink.checked).toBe(true);
});
