// Axes of the chart of avoided work, and where its points lie; nothing here draws.
import { numbersIn } from '../format.js';
import { logTicks, niceLinear, niceLog, scaleOf, ticks, type Domain } from './axis.js';
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
  const top = Math.max(...values, 0) || 1;
  const smallest = Math.min(...values, top);
  const firstLength = points[0]?.length ?? 1;
  const lastLength = points.at(-1)?.length ?? 1;

  const inner = {
    left: margin.left,
    right: width - margin.right,
    top: margin.top,
    bottom: height - margin.bottom,
  };
  const xDomain: Domain = [firstLength, Math.max(lastLength, firstLength + 1)];
  const yDomain = logLog ? niceLog([smallest, Math.max(top, smallest * 10)]) : niceLinear([0, top]);
  const x = scaleOf(xDomain, [inner.left, inner.right], logLog);
  const y = scaleOf(yDomain, [inner.bottom, inner.top], logLog);

  const xCount = Math.max(2, Math.floor((inner.right - inner.left) / X_PITCH));
  const yCount = Math.max(2, Math.floor((inner.bottom - inner.top) / Y_PITCH));
  const ticksOf = logLog ? logTicks : ticks;
  // A narrow range of lengths has no round number in a logarithmic axis: its ends then say what it
  // is.
  const xValues = ticksOf(xDomain, xCount).filter(Number.isInteger);
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
    yTicks: ticksOf(yDomain, yCount).map((value) => ({
      at: y(value),
      label: numbersIn(locale).compact(value),
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

/**
 * The area between the two lines where the replays cost more: what the cache avoided. Where the
 * lines cross, the area ends at the crossing.
 */
export function areaPath(points: readonly PlotPoint[]): string {
  const both = points.filter(
    ({ cachedY, replayY }) => !Number.isNaN(cachedY) && !Number.isNaN(replayY),
  );
  const at = (x: number, y: number) => `${x.toFixed(2)} ${y.toFixed(2)}`;
  // Downwards on the screen is less: the gain of a point is positive where the replays cost more.
  const gain = ({ cachedY, replayY }: PlotPoint) => cachedY - replayY;
  return both
    .slice(1)
    .map((b, i) => {
      const a = both[i]!;
      const [first, second] = [gain(a), gain(b)];
      if (first <= 0 && second <= 0) return '';
      const part = first / (first - second);
      const crossing = at(a.x + part * (b.x - a.x), a.cachedY + part * (b.cachedY - a.cachedY));
      const begin = first <= 0 ? crossing : `${at(a.x, a.cachedY)}L${at(a.x, a.replayY)}`;
      const end = second <= 0 ? crossing : `${at(b.x, b.replayY)}L${at(b.x, b.cachedY)}`;
      return `M${begin}L${end}Z`;
    })
    .join('');
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
