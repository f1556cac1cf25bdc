// The numbers of the chart of avoided work.
import type { FigureMessages } from '../i18n/en-figures.js';
import { formatWork } from './work-chart.js';
import { difference, type WorkMetric, type WorkPoint } from './work-series.js';

export interface WorkTableProps {
  readonly points: readonly WorkPoint[];
  readonly metric: WorkMetric;
  readonly messages: FigureMessages;
}

export function WorkTable({ points, metric, messages }: WorkTableProps) {
  const text = messages.work;
  const format = (value: number) => formatWork(value, metric, messages.locale);
  return (
    <div
      class="kv-scroll kv-work-table"
      role="region"
      tabIndex={0}
      aria-label={`${text.table}: ${text.metrics[metric]}`}
    >
      <table>
        <caption>
          {text.table}: {text.metrics[metric]}
        </caption>
        <thead>
          <tr>
            {[
              text.length,
              text.call,
              text.cached,
              text.replay,
              text.difference,
              text.replayKind,
            ].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {points.map((point) => (
            <tr key={point.length}>
              <th scope="row">{point.length}</th>
              <td class="kv-word">{text.phase[point.phase]}</td>
              <td>{format(point.cached[metric])}</td>
              <td>{format(point.replay[metric])}</td>
              <td>{format(difference(point, metric))}</td>
              <td class="kv-word">{point.replayMeasured ? text.measured : text.computed}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
