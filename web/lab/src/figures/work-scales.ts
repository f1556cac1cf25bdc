// Axes of the chart of avoided work, and where its points lie; nothing here draws.
import { scaleLinear, scaleLog } from 'd3-scale';
import { extent, max, range, ticks } from 'd3-array';
import { compactNumber } from './format.js';
import type { WorkMetric, WorkPoint } from './work-series.js';

export type WorkAxes = 'linear' | 'logLog';

export interface Tick {
  readonly at: number;
  readonly label: string;
}

/** One prefix in the chart's coordinates; a `y` is NaN where there is nothing to show. */
export interface PlotPoint {
  readonly point: WorkPoint;
  readonly x: number;
  readonly cachedY: number;
  readonly replayY: number;
}

export interface WorkPlot {
  readonly width: number;
  readonly height: number;
  readonly margin: {
    readonly left: number;
    readonly right: number;
    readonly top: number;
    readonly bottom: number;
  };
  readonly points: readonly PlotPoint[];
  readonly xTicks: readonly Tick[];
  readonly yTicks: readonly Tick[];
}

const margin = { left: 56, right: 16, top: 16, bottom: 40 };
/** Between two labels of the axes. */
const X_PITCH = 64;
const Y_PITCH = 44;

/**
 * Ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, the powers alone where there are too
 * many, and evenly spaced numbers where there are hardly any.
 */
function logTicks([low, high]: readonly [number, number], count: number): number[] {
  const exponents = range(Math.floor(Math.log10(low)), Math.ceil(Math.log10(high)) + 1);
  const inside = (digits: readonly number[]) =>
    exponents
      .flatMap((exponent) => digits.map((digit) => digit * 10 ** exponent))
      .filter((value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
  const round = inside([1, 2, 5]);
  if (round.length < 3) return ticks(low, high, Math.min(count, 5));
  if (round.length <= count) return round;
  const powers = inside([1]);
  const every = Math.ceil(powers.length / count);
  return powers.filter((_, i) => i % every === 0);
}

export function plotWork(
  points: readonly WorkPoint[],
  metric: WorkMetric,
  axes: WorkAxes,
  width: number,
  height: number,
  locale: string,
): WorkPlot {
  const logLog = axes === 'logLog';
  const values = points
    .flatMap(({ cached, replay }) => [cached[metric], replay[metric]])
    .filter((value) => value > 0);
  const top = max(values) ?? 1;
  const [firstLength = 1, lastLength = 1] = extent(points, ({ length }) => length) as [
    number?,
    number?,
  ];
  const [smallest = 1] = extent(values) as [number?, number?];

  const inner = {
    left: margin.left,
    right: width - margin.right,
    top: margin.top,
    bottom: height - margin.bottom,
  };
  const xDomain = [firstLength, Math.max(lastLength, firstLength + 1)];
  const yDomain = logLog ? [smallest, Math.max(top, smallest * 10)] : [0, top];
  const make = logLog ? scaleLog : scaleLinear;
  const x = make(xDomain, [inner.left, inner.right]);
  const y = make(yDomain, [inner.bottom, inner.top]).nice();

  const xCount = Math.max(2, Math.floor((inner.right - inner.left) / X_PITCH));
  const yCount = Math.max(2, Math.floor((inner.bottom - inner.top) / Y_PITCH));
  const ticksOf = (scale: typeof x, count: number) =>
    logLog ? logTicks(scale.domain() as [number, number], count) : scale.ticks(count);
  // A narrow range of lengths has no round number in a logarithmic axis: its ends then say what it
  // is.
  const xValues = ticksOf(x, xCount).filter(Number.isInteger);
  const shown = xValues.length >= 2 ? xValues : [...new Set([firstLength, lastLength])];
  const at = (value: number) => (Number.isFinite(value) && (!logLog || value > 0) ? y(value) : NaN);
  return {
    width,
    height,
    margin,
    points: points.map((point) => ({
      point,
      x: x(point.length),
      cachedY: at(point.cached[metric]),
      replayY: at(point.replay[metric]),
    })),
    xTicks: shown.map((value) => ({ at: x(value), label: value.toLocaleString(locale) })),
    yTicks: ticksOf(y, yCount).map((value) => ({
      at: y(value),
      label: compactNumber(value, locale),
    })),
  };
}

/** The path through the points that have a `y`. */
export function linePath(points: readonly PlotPoint[], y: (point: PlotPoint) => number): string {
  return points
    .filter((point) => !Number.isNaN(y(point)))
    .map((point, i) => `${i === 0 ? 'M' : 'L'}${point.x.toFixed(2)} ${y(point).toFixed(2)}`)
    .join('');
}

/** The area between the two lines: what the cache spared. */
export function areaPath(points: readonly PlotPoint[]): string {
  const both = points.filter(
    ({ cachedY, replayY }) => !Number.isNaN(cachedY) && !Number.isNaN(replayY),
  );
  if (both.length < 2) return '';
  const back = [...both]
    .reverse()
    .map(({ x, cachedY }) => `L${x.toFixed(2)} ${cachedY.toFixed(2)}`);
  return `${linePath(both, ({ replayY }) => replayY)}${back.join('')}Z`;
}

/**
 * Points that get a mark: every replay that was run, both ends, and of the others what leaves them
 * apart.
 */
export function markedPoints(points: readonly PlotPoint[], pitch = 9): PlotPoint[] {
  let lastX = -Infinity;
  return points.filter(({ point, x }, i) => {
    const apart = x - lastX >= pitch;
    if (!apart && !point.replayMeasured && i !== points.length - 1) return false;
    lastX = x;
    return true;
  });
}

/** The point nearest to `x`. */
export function nearestPoint(points: readonly PlotPoint[], x: number): number {
  let nearest = 0;
  points.forEach((point, i) => {
    if (Math.abs(point.x - x) < Math.abs(points[nearest]!.x - x)) nearest = i;
  });
  return nearest;
}
