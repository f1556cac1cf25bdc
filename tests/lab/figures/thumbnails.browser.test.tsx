// Thumbnails, weights on the text, and the table of scores.
import { useState } from 'preact/hooks';
import { expect, test, vi } from 'vitest';
import { userEvent } from 'vitest/browser';
import {
  AttentionStore,
  HeadTable,
  Thumbnails,
  TokenWeights,
} from '../../../web/lab/src/figures/index.js';
import { levelOf } from '../../../web/lab/src/figures/colour-scale.js';
import { rampCss } from '../../../web/lab/src/figures/palette.js';
import { layoutThumbnails } from '../../../web/lab/src/figures/thumbnail-layout.js';
import { figures as en } from '../../../web/lab/src/i18n/en-figures.js';
import { figures as ru } from '../../../web/lab/src/i18n/ru-figures.js';
import type { HeadRef } from '../../../web/lab/src/figures/types.js';
import { evidenceOf, plain, weightRow } from './matrices.js';
import { drawn, expectAccessible, mount, pixel } from './mount.js';

const messages = en;

function filledStore(length: number): AttentionStore {
  const store = new AttentionStore({ nLayers: 2, nHeads: 3 });
  const tokens = Array.from({ length }, (_, i) => i % 4);
  store.append(tokens, evidenceOf({ nHeads: 3, layers: [0, 1], firstPosition: 0, nRows: length }));
  return store;
}

function Tiles({ store, onSelect }: { store: AttentionStore; onSelect?: (head: HeadRef) => void }) {
  const [selected, setSelected] = useState<HeadRef>({ layer: 0, head: 0 });
  void store.revision.value;
  return (
    <Thumbnails
      store={store}
      mapStyle={plain}
      selected={selected}
      onSelect={(head) => {
        setSelected(head);
        onSelect?.(head);
      }}
      messages={messages}
    />
  );
}

test('a thumbnail has the colours of its weights, and grows with the history', async () => {
  const store = filledStore(4);
  const { container } = await mount(<Tiles store={store} />);
  const layout = layoutThumbnails(2, 3, 640);
  const canvas = container.querySelector('canvas')!;
  const colour = (layer: number, column: number, query: number, key: number, n: number) => {
    const cell = layout.tile / n;
    return pixel(
      canvas,
      layout.x(column) + (key + 0.5) * cell,
      layout.y(layer) + (query + 0.5) * cell,
    );
  };
  const expected = (weight: number) => rampCss('cividis', levelOf('linear', weight, 1));
  expect(colour(1, 2, 3, 1, 4)).toBe(expected(weightRow(1, 2, 3)[1]!));
  const mean = (weightRow(1, 0, 3)[1]! + weightRow(1, 1, 3)[1]! + weightRow(1, 2, 3)[1]!) / 3;
  expect(colour(1, 3, 3, 1, 4)).toBe(expected(mean));
  expect(container.textContent).toContain('4 rows, one pixel per weight.');

  store.append([1], evidenceOf({ nHeads: 3, layers: [0, 1], firstPosition: 4, nRows: 1 }));
  await drawn();
  expect(colour(0, 1, 4, 2, 5)).toBe(expected(weightRow(0, 1, 4)[2]!));
  expect(colour(0, 1, 2, 1, 5)).toBe(expected(weightRow(0, 1, 2)[1]!));
  store.truncate(2);
  await drawn();
  expect(colour(0, 1, 1, 0, 2)).toBe(expected(weightRow(0, 1, 1)[0]!));
});

test('thumbnails are chosen by click and by arrow keys, with the focus', async () => {
  const onSelect = vi.fn();
  const { container } = await mount(<Tiles store={filledStore(4)} onSelect={onSelect} />);
  const cells = container.querySelectorAll<HTMLElement>('[role="gridcell"]');
  expect(cells.length).toBe(2 * 4);
  await userEvent.click(cells[5]!);
  expect(onSelect).toHaveBeenLastCalledWith({ layer: 1, head: 1 });
  const press = async (key: string) => {
    await userEvent.keyboard(key);
    await drawn();
    expect(document.activeElement!.getAttribute('aria-selected')).toBe('true');
    return document.activeElement!.getAttribute('aria-label');
  };
  await userEvent.tab({ shift: true });
  await userEvent.tab();
  expect(await press('{ArrowRight}')).toBe('Layer 1, head 2');
  expect(await press('{ArrowRight}')).toBe('Layer 1, mean over heads');
  expect(await press('{ArrowUp}')).toBe('Layer 0, mean over heads');
  expect(await press('{Home}')).toBe('Layer 0, head 0');
  expect(await press('{ArrowLeft}')).toBe('Layer 0, head 0');
  expect(await press('{End}')).toBe('Layer 0, mean over heads');
  expect(container.querySelectorAll('[tabindex="0"]').length).toBe(1);
  await expectAccessible(container);
});

test('the names of columns and layers stay within their places at every size of the thumbnails', async () => {
  const store = new AttentionStore({ nLayers: 12, nHeads: 12 });
  const sizes = new Set<number>();
  const figures = (
    <>
      {[en, ru].map((language) => (
        <Thumbnails
          key={language.locale}
          store={store}
          mapStyle={plain}
          selected={{ layer: 0, head: 0 }}
          onSelect={() => {}}
          messages={language}
        />
      ))}
    </>
  );
  const { container, update } = await mount(figures);
  for (let width = 320; width <= 1120; width += 13) {
    container.style.width = `${width}px`;
    await update(figures);
    const { tile, width: needed } = layoutThumbnails(12, 12, width);
    sizes.add(tile);
    // Nothing is cut off where everything has room.
    if (tile > 24) expect(needed).toBeLessThanOrEqual(width);
    for (const body of container.querySelectorAll('.kv-thumbnails-body')) {
      const frame = body.getBoundingClientRect();
      const names = [...body.querySelectorAll('.kv-thumbnails-name')].map((name) => ({
        text: `“${name.textContent}” at ${tile} px`,
        box: name.getBoundingClientRect(),
      }));
      const [columns, layers] = [names.slice(0, 13), names.slice(13)];
      for (const { text, box } of names) {
        expect(box.left, text).toBeGreaterThanOrEqual(frame.left);
        expect(box.right, text).toBeLessThanOrEqual(frame.right);
      }
      columns.slice(1).forEach(({ text, box }, column) => {
        expect(box.left, text).toBeGreaterThan(columns[column]!.box.right);
      });
      const firstTile = body.querySelector('[role="gridcell"]')!.getBoundingClientRect();
      for (const { text, box } of layers)
        expect(box.right, text).toBeLessThanOrEqual(firstTile.left);
    }
  }
  expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([24, 76]);
  expect(sizes.size).toBeGreaterThan(40);
});

test('thumbnails of layers that lack rows say so', async () => {
  const store = new AttentionStore({ nLayers: 2, nHeads: 3 });
  store.append([1, 2, 3], evidenceOf({ nHeads: 3, layers: [0], firstPosition: 0, nRows: 3 }));
  const { container } = await mount(<Tiles store={store} />);
  expect(container.textContent).toContain('In 1 of 2 layers some rows were not captured.');
});

function Weights({
  store,
  onAnnounce,
}: {
  store: AttentionStore;
  onAnnounce?: (text: string) => void;
}) {
  const [selected, setSelected] = useState(2);
  const head = { layer: 0, head: 1 };
  return (
    <TokenWeights
      tokens={['<s>', '·a', 'b', '·c', '·d']}
      selected={selected}
      outgoing={store.outgoing(head, selected)}
      incoming={store.incoming(head, selected)}
      head={head}
      onSelect={setSelected}
      messages={messages}
      {...(onAnnounce && { onAnnounce })}
    />
  );
}

test('bars below are outgoing and bars above incoming weights, in proportion', async () => {
  const { container } = await mount(<Weights store={filledStore(5)} />);
  const heights = (of: 'in' | 'out') =>
    [...container.querySelectorAll<HTMLElement>('.kv-chip')].map(({ style }) => {
      const height = style.getPropertyValue(`--${of}`);
      return height === '' ? null : Number(height);
    });
  const out = weightRow(0, 1, 2);
  const into = [2, 3, 4].map((query) => weightRow(0, 1, query)[2]!);
  const close = (actual: (number | null)[], expected: (number | null)[]) => {
    expect(actual.map((value) => value === null)).toEqual(expected.map((value) => value === null));
    expected.forEach(
      (value, i) =>
        value !== null && expect(Math.abs(actual[i]! - value)).toBeLessThanOrEqual(0.5 / 22 + 1e-6),
    );
  };
  close(heights('out'), [...out.map((weight) => weight / Math.max(...out)), null, null]);
  close(heights('in'), [null, null, ...into.map((weight) => weight / Math.max(...into))]);
});

test('the numbers are read on hover and on focus', async () => {
  const onAnnounce = vi.fn();
  const { container } = await mount(<Weights store={filledStore(5)} onAnnounce={onAnnounce} />);
  const chip = (position: number) =>
    container.querySelector<HTMLElement>(`[data-position="${position}"]`)!;
  const readout = () => container.querySelector('.kv-readout')!.textContent!;
  await userEvent.hover(chip(1));
  const weight = weightRow(0, 1, 2)[1]!;
  expect(readout()).toMatch(/^1 ·a, attended to with /);
  expect(Math.fround(Number(readout().split('with ')[1]))).toBe(weight);
  await userEvent.click(chip(3));
  expect(chip(3).ariaSelected).toBe('true');
  await userEvent.tab({ shift: true });
  await userEvent.tab();
  expect(document.activeElement).toBe(chip(3));
  await userEvent.keyboard('{ArrowLeft}');
  expect(document.activeElement).toBe(chip(2));
  expect([chip(2).ariaSelected, chip(3).ariaSelected]).toEqual(['false', 'true']);
  expect(chip(2).getAttribute('aria-label')).toMatch(/^2 b, attended to with [\d.]+$/);
  expect(onAnnounce).toHaveBeenLastCalledWith(chip(2).getAttribute('aria-label'));
  await userEvent.keyboard('{Enter}');
  await drawn();
  expect(chip(2).ariaSelected).toBe('true');
  expect(chip(2).getAttribute('aria-label')).toMatch(
    /^2 b, attended to with [\d.]+, attends to it with [\d.]+$/,
  );
  await userEvent.keyboard('{End}');
  expect(chip(4).getAttribute('aria-label')).toMatch(/^4 ·d, attends to it with [\d.]+$/);
  await expectAccessible(container);
});

test('a store without all rows has no incoming weights and says how to get them', async () => {
  const store = new AttentionStore({ nLayers: 1, nHeads: 2 });
  store.append([1, 2, 3, 4, 5], evidenceOf({ nHeads: 2, layers: [0], firstPosition: 4, nRows: 1 }));
  const { container } = await mount(<Weights store={store} />);
  expect(container.textContent).toContain(messages.weights.incomingUnknown);
});

const scores = [
  { entropy: 1.5, previous: 0.25, first: 0.5, induction: NaN },
  { entropy: 0.5, previous: 0.75, first: 0.125, induction: 0.5 },
  { entropy: 1, previous: 0.5, first: 0.25, induction: 0.25 },
];

test('the table has the scores of each head and their mean, and sorts by any column', async () => {
  const onSelect = vi.fn();
  const { container } = await mount(
    <HeadTable
      layer={3}
      scores={scores}
      of={{ rows: 8, length: 9 }}
      selected={{ layer: 3, head: 1 }}
      onSelect={onSelect}
      messages={messages}
    />,
  );
  const heads = () => [...container.querySelectorAll('tbody th')].map((cell) => cell.textContent);
  const cells = (row: string) =>
    [...container.querySelectorAll(`${row} td`)].map(
      (cell) => cell.querySelector('data')?.value ?? '',
    );
  expect(heads()).toEqual(['Head 0', 'Head 1', 'Head 2']);
  expect(cells('tbody tr:nth-child(1)')).toEqual(['1.5', '0.25', '0.5', '']);
  expect(cells('tfoot tr')).toEqual(['1', '0.5', String((0.5 + 0.125 + 0.25) / 3), '0.375']);

  const header = (name: string) =>
    [...container.querySelectorAll('thead th')].find(({ textContent }) =>
      textContent!.startsWith(name),
    )!;
  await userEvent.click(header('Induction').querySelector('button')!);
  expect(heads()).toEqual(['Head 1', 'Head 2', 'Head 0']);
  expect(header('Induction').ariaSort).toBe('descending');
  await userEvent.click(header('Entropy').querySelector('button')!);
  await userEvent.click(header('Entropy').querySelector('button')!);
  expect(heads()).toEqual(['Head 1', 'Head 2', 'Head 0']);
  expect(header('Entropy').ariaSort).toBe('ascending');

  await userEvent.click(container.querySelector('tbody button')!);
  expect(onSelect).toHaveBeenLastCalledWith({ layer: 3, head: 1 });
  expect(container.querySelector('[aria-pressed="true"]')!.textContent).toBe('Head 1');
  await expectAccessible(container);
});
