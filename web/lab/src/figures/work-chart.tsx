// Avoided work: what the cache did against what replays do, summed up to each prefix. To assistive
// technology and the keyboard it is a slider over the prefixes; WorkTable has the same numbers.
import { useId, useMemo, useRef, useState } from 'preact/hooks';
import { Choice } from './controls.js';
import { formatNumber } from './format.js';
import { useWidth } from './hooks.js';
import type { FigureMessages } from './messages.js';
import type { Announce } from './types.js';
import { WorkMarks } from './work-marks.js';
import { nearestPoint, plotWork, type WorkAxes } from './work-scales.js';
import { avoided, WORK_METRICS, type WorkMetric, type WorkPoint } from './work-series.js';

export interface WorkChartProps {
  readonly points: readonly WorkPoint[];
  readonly metric: WorkMetric;
  readonly axes: WorkAxes;
  readonly messages: FigureMessages;
  readonly onAnnounce?: Announce;
}

/** One of the sums as it is read: counts whole, times to a thousandth. */
export function formatWork(value: number, metric: WorkMetric, locale: string): string {
  if (Number.isNaN(value)) return '–';
  return formatNumber(value, locale, metric === 'milliseconds' ? 3 : 0);
}

export function describePoint(
  point: WorkPoint,
  metric: WorkMetric,
  messages: FigureMessages,
): string {
  const format = (value: number) => formatWork(value, metric, messages.locale);
  return messages.work.point(
    point.length,
    format(point.cached[metric]),
    format(point.replay[metric]),
    point.replayMeasured,
    format(avoided(point, metric)),
  );
}

export function WorkChart({ points, metric, axes, messages, onAnnounce }: WorkChartProps) {
  const id = useId();
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const [chosen, setChosen] = useState<number | null>(null);
  const height = Math.round(Math.max(220, Math.min(380, width * 0.52)));
  const plot = useMemo(
    () => plotWork(points, metric, axes, Math.max(width, 200), height, messages.locale),
    [points, metric, axes, width, height, messages.locale],
  );
  const text = messages.work;
  if (points.length === 0) return <p class="kv-empty">{messages.map.empty}</p>;

  const last = points.length - 1;
  const active = chosen === null ? null : Math.min(chosen, last);
  const read = points[active ?? last]!;
  const choose = (index: number | null) => {
    if (index === chosen) return;
    setChosen(index);
    if (index !== null) onAnnounce?.(describePoint(points[index]!, metric, messages));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = active ?? last;
    const moves: Readonly<Record<string, number>> = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      PageDown: at - 10,
      PageUp: at + 10,
      Home: 0,
      End: last,
    };
    const to = moves[event.key];
    if (event.key === 'Escape' && chosen !== null) choose(null);
    else if (to !== undefined) choose(Math.max(0, Math.min(last, to)));
    else return;
    event.preventDefault();
  };
  const onPointerMove = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    choose(nearestPoint(plot.points, event.clientX - box.left));
  };
  const noTime = metric === 'milliseconds' && Number.isNaN(read.replay.milliseconds);
  return (
    <figure class="kv-figure kv-work">
      <div class="kv-work-frame">
        <div ref={frame} />
        <div
          role="slider"
          tabIndex={0}
          aria-label={text.label(metric)}
          aria-describedby={`${id}-help`}
          aria-valuemin={1}
          aria-valuemax={points.length}
          aria-valuenow={(active ?? last) + 1}
          aria-valuetext={describePoint(read, metric, messages)}
          onKeyDown={onKeyDown}
          onPointerMove={onPointerMove}
          onPointerLeave={() => choose(null)}
        >
          {width > 0 && (
            <svg width={plot.width} height={plot.height} aria-hidden="true">
              <WorkMarks plot={plot} metric={metric} messages={messages} active={active} />
            </svg>
          )}
        </div>
      </div>
      <figcaption>
        <p class="kv-readout">{describePoint(read, metric, messages)}</p>
        <p class="kv-note kv-weights-key">
          <WorkKey messages={messages} />
          {noTime && <span>{text.noReplayTime}</span>}
        </p>
        <p class="kv-note">{text.sums}</p>
        <p id={`${id}-help`} class="hidden-visually">
          {text.instructions}
        </p>
      </figcaption>
    </figure>
  );
}

/** What the lines and marks mean, in their shapes. */
function WorkKey({ messages: { work } }: { messages: FigureMessages }) {
  return (
    <>
      <span>
        <svg width="28" height="12" aria-hidden="true">
          <path class="kv-line-cached" d="M0 6H28" />
          <circle class="kv-mark-cached" cx="14" cy="6" r="3" />
        </svg>{' '}
        {work.cached}, {work.measured}
      </span>
      <span>
        <svg width="28" height="12" aria-hidden="true">
          <path class="kv-line-replay" d="M0 6H28" />
          <rect class="kv-mark-measured" x="10" y="2" width="8" height="8" />
        </svg>{' '}
        {work.replay}, {work.measured}
      </span>
      <span>
        <svg width="28" height="12" aria-hidden="true">
          <path class="kv-line-replay" d="M0 6H28" />
          <path class="kv-mark-computed" d="M14 2l4 4l-4 4l-4 -4z" />
        </svg>{' '}
        {work.replay}, {work.computed}
      </span>
      <span>
        <svg width="28" height="12" aria-hidden="true">
          <rect class="kv-avoided" width="28" height="12" />
        </svg>{' '}
        {work.avoided}
      </span>
    </>
  );
}

interface WorkControlsProps {
  readonly metric: WorkMetric;
  readonly axes: WorkAxes;
  readonly onMetric: (metric: WorkMetric) => void;
  readonly onAxes: (axes: WorkAxes) => void;
  readonly messages: FigureMessages;
}

export function WorkControls({
  metric,
  axes,
  onMetric,
  onAxes,
  messages: { work },
}: WorkControlsProps) {
  return (
    <div class="kv-controls">
      <Choice
        name={work.metric}
        options={WORK_METRICS}
        value={metric}
        labels={work.metrics}
        onChange={onMetric}
      />
      <Choice
        name={work.axes}
        options={['linear', 'logLog'] as const}
        value={axes}
        labels={{ linear: work.linear, logLog: work.logLog }}
        onChange={onAxes}
      />
    </div>
  );
}
