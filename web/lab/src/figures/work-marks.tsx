// The drawing of the chart of avoided work, for the page and for exports: axes, lines, marks, key.
// A disc is the work with the cache, a filled square a replay that was run, an open diamond a
// computed one.
import type { FigureMessages } from '../i18n/en-figures.js';
import { areaPath, linePath, markedPoints, type PlotPoint, type WorkPlot } from './work-scales.js';
import type { WorkMetric } from './work-series.js';

interface WorkMarksProps {
  readonly plot: WorkPlot;
  readonly metric: WorkMetric;
  readonly messages: FigureMessages;
  /** Index of the point that is read. */
  readonly active: number | null;
}

export function WorkMarks({ plot, metric, messages, active }: WorkMarksProps) {
  const { width, height, margin, points } = plot;
  const bottom = height - margin.bottom;
  const right = width - margin.right;
  const marked = markedPoints(points);
  const read = active === null ? undefined : points[active];
  return (
    <>
      <g class="kv-grid">
        {plot.yTicks.map(({ at, label }) => (
          <g key={label}>
            <line x1={margin.left} x2={right} y1={at} y2={at} />
            <text x={margin.left - 8} y={at} dy="0.35em" text-anchor="end">
              {label}
            </text>
          </g>
        ))}
        {plot.xTicks.map(({ at, label }) => (
          <g key={label}>
            <line x1={at} x2={at} y1={bottom} y2={bottom + 4} />
            <text x={at} y={bottom + 17} text-anchor="middle">
              {label}
            </text>
          </g>
        ))}
      </g>
      <line class="kv-baseline" x1={margin.left} x2={right} y1={bottom} y2={bottom} />
      <text class="kv-axis-title" x={right} y={height - 4} text-anchor="end">
        {messages.work.length} →
      </text>
      <path class="kv-avoided" d={areaPath(points)} />
      <path class="kv-line-replay" d={linePath(points, ({ replayY }) => replayY)} fill="none" />
      <path class="kv-line-cached" d={linePath(points, ({ cachedY }) => cachedY)} fill="none" />
      {read && <line class="kv-read-line" x1={read.x} x2={read.x} y1={margin.top} y2={bottom} />}
      {marked.map((point) => (
        <ReplayMark key={point.point.length} at={point} metric={metric} />
      ))}
      {marked.map(({ point, x, cachedY }) =>
        Number.isNaN(cachedY) ? null : (
          <circle
            key={point.length}
            class="kv-mark-cached"
            cx={x}
            cy={cachedY}
            r={3}
            data-length={point.length}
            data-value={point.cached[metric]}
          />
        ),
      )}
      {read && !Number.isNaN(read.replayY) && (
        <circle class="kv-read-ring" cx={read.x} cy={read.replayY} r={7} />
      )}
      {read && !Number.isNaN(read.cachedY) && (
        <circle class="kv-read-ring" cx={read.x} cy={read.cachedY} r={7} />
      )}
    </>
  );
}

function ReplayMark({ at: { point, x, replayY }, metric }: { at: PlotPoint; metric: WorkMetric }) {
  if (Number.isNaN(replayY)) return null;
  const data = { 'data-length': point.length, 'data-value': point.replay[metric] };
  return point.replayMeasured ? (
    <rect class="kv-mark-measured" x={x - 4} y={replayY - 4} width={8} height={8} {...data} />
  ) : (
    <path class="kv-mark-computed" d={`M${x} ${replayY - 4}l4 4l-4 4l-4 -4z`} {...data} />
  );
}

type KeyMark = 'cached' | 'measured' | 'computed' | 'avoided';

/** What the lines and marks mean. */
export const workKey = ({
  work,
}: FigureMessages): readonly { readonly mark: KeyMark; readonly label: string }[] => [
  { mark: 'cached', label: `${work.cached}, ${work.measured}` },
  { mark: 'measured', label: `${work.replay}, ${work.measured}` },
  { mark: 'computed', label: `${work.replay}, ${work.computed}` },
  { mark: 'avoided', label: work.avoided },
];

/** A sample of a mark, 28 wide and 12 high. */
export function WorkKeyMark({ mark }: { readonly mark: KeyMark }) {
  switch (mark) {
    case 'cached':
      return (
        <>
          <path class="kv-line-cached" d="M0 6H28" />
          <circle class="kv-mark-cached" cx="14" cy="6" r="3" />
        </>
      );
    case 'measured':
      return (
        <>
          <path class="kv-line-replay" d="M0 6H28" />
          <rect class="kv-mark-measured" x="10" y="2" width="8" height="8" />
        </>
      );
    case 'computed':
      return (
        <>
          <path class="kv-line-replay" d="M0 6H28" />
          <path class="kv-mark-computed" d="M14 2l4 4l-4 4l-4 -4z" />
        </>
      );
    case 'avoided':
      return <rect class="kv-avoided" width="28" height="12" />;
  }
}
