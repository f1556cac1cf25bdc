// The scores of the heads of one layer as a table that can be sorted; choosing a head chooses it
// everywhere.
import { useState } from 'preact/hooks';
import { numbersIn } from '../format.js';
import { HEAD_SCORES, meanScores, type HeadScore, type HeadScores } from './head-stats.js';
import type { FigureMessages } from '../i18n/en-figures.js';
import type { HeadRef, Place } from './types.js';

export interface HeadTableProps {
  readonly layer: number;
  /** By head, as `AttentionStore.scores` gives them. */
  readonly scores: readonly HeadScores[];
  /**
   * What they are of: the mean over `rows` rows of a history of `length` positions, or one row.
   */
  readonly of: { readonly rows: number; readonly length: number } | { readonly place: Place };
  readonly selected: HeadRef;
  readonly onSelect: (head: HeadRef) => void;
  readonly messages: FigureMessages;
}

type Column = 'head' | HeadScore;
interface Order {
  readonly by: Column;
  readonly ascending: boolean;
}

/** Heads in the order of a column; undefined scores last, ties by head. */
export function sortedHeads(scores: readonly HeadScores[], { by, ascending }: Order): number[] {
  const heads = scores.map((_, head) => head);
  if (by === 'head') return ascending ? heads : heads.reverse();
  const key = (head: number) => scores[head]![by];
  return heads.sort((a, b) => {
    if (Number.isNaN(key(a)) || Number.isNaN(key(b)))
      return Number(Number.isNaN(key(a))) - Number(Number.isNaN(key(b)));
    return (ascending ? key(a) - key(b) : key(b) - key(a)) || a - b;
  });
}

export function HeadTable({ layer, scores, of, selected, onSelect, messages }: HeadTableProps) {
  const [order, setOrder] = useState<Order>({ by: 'head', ascending: true });
  const text = messages.table;
  const columns: readonly Column[] = ['head', ...HEAD_SCORES];
  const title = (column: Column) => (column === 'head' ? text.head : text.scores[column]);
  const sortBy = (by: Column) =>
    setOrder({ by, ascending: order.by === by ? !order.ascending : by === 'head' });
  const ariaSort = (column: Column) =>
    order.by !== column ? undefined : order.ascending ? 'ascending' : 'descending';

  const cells = (row: HeadScores) =>
    HEAD_SCORES.map((score) => (
      <td key={score}>
        <Score
          value={row[score]}
          bar={score !== 'entropy'}
          none={text.none}
          locale={messages.locale}
        />
      </td>
    ));
  const isSelected = (head: number | 'mean') => selected.layer === layer && selected.head === head;
  const headButton = (head: number | 'mean', name: string) => (
    <button
      type="button"
      class="kv-link"
      aria-pressed={isSelected(head)}
      onClick={() => onSelect({ layer, head })}
    >
      {name}
    </button>
  );
  return (
    <figure class="kv-figure kv-head-table">
      <div class="kv-scroll" role="region" tabIndex={0} aria-label={text.label(layer)}>
        <table>
          <caption class="hidden-visually">{text.label(layer)}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col" aria-sort={ariaSort(column)}>
                  <button
                    type="button"
                    class="kv-sort"
                    title={text.sortBy(title(column))}
                    onClick={() => sortBy(column)}
                  >
                    {title(column)}
                    <span aria-hidden="true">
                      {order.by === column ? (order.ascending ? ' ↑' : ' ↓') : ''}
                    </span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sortedHeads(scores, order).map((head) => (
              <tr key={head} data-selected={isSelected(head)}>
                <th scope="row">{headButton(head, messages.head(head))}</th>
                {cells(scores[head]!)}
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr data-selected={isSelected('mean')}>
              <th scope="row">{headButton('mean', text.mean)}</th>
              {cells(meanScores(scores))}
            </tr>
          </tfoot>
        </table>
      </div>
      <figcaption class="kv-note">
        <p>{describe(of, text)}</p>
        <dl class="kv-definitions">
          {HEAD_SCORES.map((score) => (
            <div key={score}>
              <dt>{text.scores[score]}</dt>
              <dd>{text.definitions[score]}</dd>
            </div>
          ))}
        </dl>
      </figcaption>
    </figure>
  );
}

/** What the scores are averaged over. Row 0 never counts: all heads score the same there. */
function describe(of: HeadTableProps['of'], text: FigureMessages['table']): string {
  if ('place' in of) return text.oneRow(of.place);
  if (of.rows === 0) return text.noRows;
  return of.rows === of.length - 1 ? text.allRows(of.rows) : text.someRows(of.rows, of.length);
}

/** Three places and, for what lies in 0..1, a bar; what no row defines is a dash with a name. */
function Score({
  value,
  bar,
  none,
  locale,
}: {
  value: number;
  bar: boolean;
  none: string;
  locale: string;
}) {
  if (Number.isNaN(value)) {
    return (
      <span title={none}>
        <span aria-hidden="true">–</span>
        <span class="hidden-visually">{none}</span>
      </span>
    );
  }
  return (
    <data
      value={String(value)}
      class="kv-score"
      style={bar ? { '--part': `${100 * Math.min(1, value)}%` } : {}}
    >
      {numbersIn(locale).fixed(value, 3)}
    </data>
  );
}
