// Tables as CSV (RFC 4180: CRLF, quotes doubled), numbers exact and with a point.
import type { AttentionMatrix } from './types.js';
import { exactDecimal } from '../format.js';
import { HEAD_SCORES, type HeadScores } from './head-stats.js';
import type { FigureMessages } from '../i18n/en-figures.js';
import { difference, WORK_METRICS, type WorkPoint } from './work-series.js';

/**
 * A field that holds a separator, a quote or a line break is quoted. NaN, which is no value, is
 * empty.
 */
function field(value: string | number): string {
  const text = typeof value === 'string' ? value : Number.isNaN(value) ? '' : exactDecimal(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(rows: Iterable<readonly (string | number)[]>): string {
  return Array.from(rows, (row) => `${row.map(field).join(',')}\r\n`).join('');
}

/** One line per cell that has a weight. Rows that were not captured are left out. */
export function mapCsv(matrix: AttentionMatrix, tokens: readonly string[]): string {
  const rows: (string | number)[][] = [['query', 'query_token', 'key', 'key_token', 'weight']];
  for (let query = 0; query < matrix.length; ++query) {
    matrix.row(query)?.forEach((weight, key) => {
      rows.push([query, tokens[query] ?? '', key, tokens[key] ?? '', weight]);
    });
  }
  return csv(rows);
}

/** One line per head. */
export function headTableCsv(scores: readonly HeadScores[], messages: FigureMessages): string {
  const head = [messages.table.head, ...HEAD_SCORES.map((score) => messages.table.scores[score])];
  return csv([head, ...scores.map((row, i) => [i, ...HEAD_SCORES.map((score) => row[score])])]);
}

/** One line per prefix, with all counts. */
export function workCsv(points: readonly WorkPoint[], { work }: FigureMessages): string {
  const columns = WORK_METRICS.flatMap((metric) =>
    [work.cached, work.replay, work.difference].map((name) => `${work.metrics[metric]}, ${name}`),
  );
  const head = [work.length, work.call, work.replayKind, ...columns];
  return csv([
    head,
    ...points.map((point) => [
      point.length,
      work.phase[point.phase],
      point.replayMeasured ? work.measured : work.computed,
      ...WORK_METRICS.flatMap((metric) => [
        point.cached[metric],
        point.replay[metric],
        difference(point, metric),
      ]),
    ]),
  ]);
}
