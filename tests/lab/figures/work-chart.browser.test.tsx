// The chart of avoided work and its table, and the files that figures are exported to.
import { computedReplayWork, type Config, type StepInfo, type Work } from 'kvlens';
import { expect, test, vi } from 'vitest';
import { userEvent } from 'vitest/browser';
import {
  AttentionStore,
  mapSvg,
  pngBlob,
  svgBlob,
  thumbnailsSvg,
  WorkChart,
  WorkControls,
  workSeries,
  workSvg,
  WorkTable,
  WORK_METRICS,
} from '../../../web/lab/src/figures/index.js';
import { figures as en } from '../../../web/lab/src/i18n/en-figures.js';
import { rampColour } from '../../../web/lab/src/figures/palette.js';
import { evidenceOf, matrixOf, plain } from './matrices.js';
import { expectAccessible, mount } from './mount.js';

const messages = en;

const config: Config = {
  nLayers: 1,
  nHeads: 2,
  nKvHeads: 1,
  headDim: 4,
  dModel: 8,
  dFf: 16,
  vocabSize: 32,
  maxSeqLen: 64,
  rmsNormEps: 1e-5,
  rope: { pairing: 'interleaved', theta: 10000, freqFactors: [] },
  qkvBias: false,
  qkNorm: false,
  tiedEmbedding: true,
  slidingWindow: 0,
};

function stepTo(kvLen: number, kvLenBefore: number): StepInfo {
  const rows = kvLen - kvLenBefore;
  const before = kvLenBefore === 0 ? 0 : computedReplayWork(config, kvLenBefore).causalScoreValues;
  const work: Work = {
    ...computedReplayWork(config, rows),
    attentionScoreValues: computedReplayWork(config, kvLen).causalScoreValues - before,
  };
  return {
    phase: kvLenBefore === 0 ? 'prefill' : 'decode',
    position: kvLen - 1,
    kvLenBefore,
    kvLen,
    rowsAppended: [rows],
    rowAttentionScoreValues: 2 * kvLen,
    work,
    milliseconds: 1,
  };
}

const steps = [stepTo(3, 0), stepTo(4, 3), stepTo(5, 4), stepTo(6, 5)];
const replay = (nTokens: number) => ({
  nTokens,
  work: computedReplayWork(config, nTokens),
  milliseconds: 2,
});
const points = workSeries(config, steps, [replay(5)]);

const marks = (container: HTMLElement, selector: string) =>
  [...container.querySelectorAll<SVGElement>(`[role="slider"] ${selector}`)].map(({ dataset }) => [
    Number(dataset['length']),
    Number(dataset['value']),
  ]);

test('marks are the data: discs with the cache, squares where a replay was run, diamonds where it was not', async () => {
  const { container } = await mount(
    <WorkChart points={points} metric="scores" axes="linear" messages={messages} />,
  );
  // 2 heads: cached 6, 10, 15, 21 entries; replays 9, 25, 50, 86.
  expect(marks(container, '.kv-mark-cached')).toEqual([
    [3, 12],
    [4, 20],
    [5, 30],
    [6, 42],
  ]);
  expect(marks(container, '.kv-mark-measured')).toEqual([[5, 100]]);
  expect(marks(container, '.kv-mark-computed')).toEqual([
    [3, 18],
    [4, 50],
    [6, 172],
  ]);
});

test('marks stand where the axes say', async () => {
  const { container } = await mount(
    <WorkChart points={points} metric="scores" axes="linear" messages={messages} />,
  );
  const circles = [
    ...container.querySelectorAll<SVGCircleElement>('[role="slider"] .kv-mark-cached'),
  ];
  const lines = [...container.querySelectorAll<SVGGElement>('.kv-grid g')]
    .filter((tick) => tick.querySelector('text')!.getAttribute('text-anchor') === 'end')
    .map((tick) => ({
      value: Number(tick.textContent),
      y: Number(tick.querySelector('line')!.getAttribute('y1')),
    }));
  const [low, high] = [lines[0]!, lines.at(-1)!];
  const perValue = (high.y - low.y) / (high.value - low.value);
  for (const circle of circles) {
    expect(Number(circle.getAttribute('cy'))).toBeCloseTo(
      low.y + perValue * (Number(circle.dataset['value']) - low.value),
      6,
    );
  }
});

test('what the cache took more is not called avoided', async () => {
  const slow = workSeries(
    config,
    steps.map((step) => ({ ...step, milliseconds: 50 })),
    [replay(5)],
  );
  const { container } = await mount(
    <WorkChart points={slow} metric="milliseconds" axes="linear" messages={messages} />,
  );
  const slider = container.querySelector('[role="slider"]')!;
  expect(slider.ariaValueText).toMatch(/, the cache took [\d.]+ more$/);
  expect(slider.ariaValueText).not.toMatch(/avoided|-|−/);
  expect(slider.querySelector('.kv-avoided')!.getAttribute('d')).toBe('');
  expect(container.textContent).toContain(messages.work.timeNote);
});

test('time is compared only where a replay was run to compare with', async () => {
  const none = workSeries(config, steps, []);
  const { container, update } = await mount(
    <WorkChart points={none} metric="milliseconds" axes="linear" messages={messages} />,
  );
  expect(container.textContent).toContain(messages.work.noReplayTime);
  expect(marks(container, '.kv-mark-cached').length).toBe(4);
  expect(marks(container, '.kv-mark-computed')).toEqual([]);
  await update(
    <WorkChart points={points} metric="milliseconds" axes="linear" messages={messages} />,
  );
  expect(marks(container, '.kv-mark-computed').length).toBe(3);
});

test('arrow keys read one prefix after the other', async () => {
  const onAnnounce = vi.fn();
  const { container } = await mount(
    <WorkChart
      points={points}
      metric="scores"
      axes="logLog"
      messages={messages}
      onAnnounce={onAnnounce}
    />,
  );
  const slider = container.querySelector<HTMLElement>('[role="slider"]')!;
  await userEvent.tab();
  expect(document.activeElement).toBe(slider);
  await userEvent.keyboard('{ArrowLeft}');
  const five = '5 tokens: 30 with the cache, 100 by replay (measured), 70 avoided';
  expect(slider.ariaValueText).toBe(five);
  expect(onAnnounce).toHaveBeenLastCalledWith(five);
  expect(container.querySelector('.kv-readout')!.textContent).toBe(five);
  await userEvent.keyboard('{Home}');
  expect(slider.ariaValueText).toBe(
    '3 tokens: 12 with the cache, 18 by replay (computed), 6 avoided',
  );
  expect([slider.ariaValueMin, slider.ariaValueMax, slider.ariaValueNow]).toEqual(['1', '4', '1']);
  await userEvent.keyboard('{Escape}');
  expect(slider.ariaValueNow).toBe('4');
  await expectAccessible(container);
});

test('fits 328 px', async () => {
  const { container } = await mount(
    <WorkChart points={points} metric="multiplyAdds" axes="linear" messages={messages} />,
    {
      width: 328,
    },
  );
  expect(container.scrollWidth).toBeLessThanOrEqual(328);
  expect(
    container.querySelector('[role="slider"] svg')!.getBoundingClientRect().width,
  ).toBeLessThanOrEqual(328);
});

test('the table has the same numbers', async () => {
  const { container } = await mount(
    <WorkTable points={points} metric="scores" messages={messages} />,
  );
  const table = [...container.querySelectorAll('tbody tr')].map((row) =>
    [...row.children].map((cell) => cell.textContent),
  );
  expect(table).toEqual([
    ['3', 'prefill', '12', '18', '6', 'computed'],
    ['4', 'decode', '20', '50', '30', 'computed'],
    ['5', 'decode', '30', '100', '70', 'measured'],
    ['6', 'decode', '42', '172', '130', 'computed'],
  ]);
  await expectAccessible(container);
});

test('controls choose what is counted and the axes', async () => {
  const onMetric = vi.fn();
  const onAxes = vi.fn();
  const { container } = await mount(
    <WorkControls
      metric="scores"
      axes="linear"
      onMetric={onMetric}
      onAxes={onAxes}
      messages={messages}
    />,
  );
  const inputs = container.querySelectorAll('input');
  expect(inputs.length).toBe(WORK_METRICS.length + 2);
  expect(WORK_METRICS[0]).toBe('causalScores');
  await userEvent.click(inputs[2]!);
  await userEvent.click(inputs[5]!);
  expect(onMetric).toHaveBeenLastCalledWith('multiplyAdds');
  expect(onAxes).toHaveBeenLastCalledWith('logLog');
  await expectAccessible(container);
});

const parsed = (svg: string) => {
  const document_ = new DOMParser().parseFromString(svg, 'image/svg+xml');
  expect(document_.querySelector('parsererror')).toBeNull();
  return document_;
};

const rows = [[1], [0.75, 0.25], [0.5, 0.25, 0.25]];
const mapExport = {
  matrix: matrixOf(rows),
  head: { layer: 0, head: 0 },
  tokens: ['<s>', '"&', '\u0007'],
  mapStyle: plain,
  messages,
};

test('SVG of a small map has one rectangle for each weight, in its colour, and both axes', () => {
  const svg = parsed(mapSvg(mapExport));
  const fills = [...svg.querySelectorAll('g[shape-rendering] rect')].map((rect) =>
    rect.getAttribute('fill'),
  );
  const rgb = (weight: number) =>
    `rgb(${rampColour('cividis', Math.round(255 * weight)).join(',')})`;
  expect(fills).toEqual(rows.flat().map(rgb));
  const texts = [...svg.querySelectorAll('text')].map(({ textContent }) => textContent);
  expect(texts.filter((text) => text === '0 <s>').length).toBe(2);
  expect(texts).toContain('1 "&');
  expect(svg.querySelector('title')!.textContent).toBe('Attention weights, layer 0, head 0');
});

test('SVG of a large map has one image of as many pixels as cells', async () => {
  const long = Array.from({ length: 60 }, (_, query) =>
    Array.from({ length: query + 1 }, () => 0.5),
  );
  const image = parsed(mapSvg({ ...mapExport, matrix: matrixOf(long) })).querySelector('image')!;
  const loaded = new Image();
  loaded.src = image.getAttribute('href')!;
  await loaded.decode();
  expect([loaded.naturalWidth, loaded.naturalHeight]).toEqual([60, 60]);
});

test('PNG is the SVG at twice its size', async () => {
  const text = mapSvg(mapExport);
  expect(svgBlob(text).type).toBe('image/svg+xml');
  const svg = parsed(text).documentElement;
  const bitmap = await createImageBitmap(await pngBlob(text));
  expect([bitmap.width, bitmap.height]).toEqual(
    ['width', 'height'].map((name) => 2 * Number(svg.getAttribute(name))),
  );
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext('2d')!;
  context.drawImage(bitmap, 0, 0);
  const cell = svg.querySelector('g[shape-rendering] rect')!;
  const middle = [Number(cell.getAttribute('x')), Number(cell.getAttribute('y'))] as [
    number,
    number,
  ];
  for (let group = cell.parentElement; group; group = group.parentElement) {
    const moved = /translate\(([\d.]+) ([\d.]+)\)/.exec(group.getAttribute('transform') ?? '');
    middle[0] += Number(moved?.[1] ?? 0);
    middle[1] += Number(moved?.[2] ?? 0);
  }
  middle.forEach((place, axis) => (middle[axis] = 2 * (place + 5)));
  expect([...context.getImageData(...middle, 1, 1).data.subarray(0, 3)]).toEqual([
    ...rampColour('cividis', 255),
  ]);
});

test('SVG of thumbnails and of the chart stand alone, in the colours of the theme', async () => {
  const store = new AttentionStore({ nLayers: 2, nHeads: 3 });
  store.append([0, 1, 2], evidenceOf({ nHeads: 3, layers: [0, 1], firstPosition: 0, nRows: 3 }));
  await mount(null, { theme: 'dark' });
  expect(
    parsed(thumbnailsSvg({ store, mapStyle: plain, messages })).querySelectorAll('image').length,
  ).toBe(8);
  const chart = workSvg({ points, metric: 'scores', axes: 'logLog', messages });
  expect(parsed(chart).querySelectorAll('circle').length).toBe(4 + 1);
  const ground = parsed(chart).querySelector('rect')!;
  expect(ground.getAttribute('fill')).toBe('rgb(25, 29, 35)');
  expect(chart).not.toMatch(/class=|var\(|color-mix/);
  expect((await pngBlob(chart, { scale: 1 })).size).toBeGreaterThan(1000);
});
