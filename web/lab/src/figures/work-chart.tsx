// Avoided work: what the cache did against what replays do, summed up to each prefix. To assistive
// technology and the keyboard it is a slider over the prefixes; WorkTable has the same numbers.
import { useId, useMemo, useRef, useState } from 'preact/hooks';
import { numbersIn } from '../format.js';
import { useWidth } from './hooks.js';
import type { FigureMessages } from '../i18n/en-figures.js';
import type { Announce } from './types.js';
import { WorkKeyMark, WorkMarks, workKey } from './work-marks.js';
import { nearestPoint, plotWork, type WorkAxes } from './work-scales.js';
import { Segments } from '../ui/segments.js';
import { difference, WORK_METRICS, type WorkMetric, type WorkPoint } from './work-series.js';

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
  return numbersIn(locale).fixed(value, metric === 'milliseconds' ? 3 : 0);
}

export function describePoint(
  point: WorkPoint,
  metric: WorkMetric,
  messages: FigureMessages,
): string {
  const format = (value: number) => formatWork(value, metric, messages.locale);
  const { cached, replay, length, replayMeasured } = point;
  const { work } = messages;
  const read = work.point(length, format(cached[metric]), format(replay[metric]), replayMeasured);
  const more = difference(point, metric);
  if (Number.isNaN(more)) return read;
  if (more === 0) return `${read}, ${work.pointSame}`;
  return `${read}, ${more > 0 ? work.pointAvoided(format(more)) : work.pointMore(format(-more))}`;
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
        {metric === 'scores' && <p class="kv-note">{text.gridNote}</p>}
        {metric === 'milliseconds' && <p class="kv-note">{text.timeNote}</p>}
        <p id={`${id}-help`} class="hidden-visually">
          {text.instructions}
        </p>
      </figcaption>
    </figure>
  );
}

/** What the lines and marks mean, in their shapes. */
function WorkKey({ messages }: { messages: FigureMessages }) {
  return workKey(messages).map(({ mark, label }) => (
    <span key={mark}>
      <svg width="28" height="12" aria-hidden="true">
        <WorkKeyMark mark={mark} />
      </svg>{' '}
      {label}
    </span>
  ));
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
      <Segments
        legend={work.metric}
        legendShown
        value={metric}
        options={WORK_METRICS.map((value) => ({ value, label: work.metrics[value] }))}
        onChange={onMetric}
      />
      <Segments
        legend={work.axes}
        legendShown
        value={axes}
        options={[
          { value: 'linear', label: work.linear },
          { value: 'logLog', label: work.logLog },
        ]}
        onChange={onAxes}
      />
    </div>
  );
}
