// The key and the value of one position in one KV head, as the cache holds them.
import { useSignalEffect, useSignal } from '@preact/signals';
import type { CacheRow, FloatArray } from 'kvlens';
import { numbers, text } from '../i18n/index.js';
import { exactDecimal, visibleToken } from '../format.js';
import { calls, cell, isLive, live, position, report, rows, trace } from '../state/store.js';
import { asProblem } from '../state/jobs.js';
import { ProblemAt } from '../ui/controls.jsx';
import { Fold } from '../ui/fold.jsx';

function Vector({ name, values }: { readonly name: string; readonly values: FloatArray }) {
  const t = text.value.timeline;
  const largest = Math.max(...[...values].map(Math.abs)) || 1;
  const gap = values.length > 48 ? 0 : 0.15;
  return (
    <figure class="vector">
      <figcaption class="small">
        {t.vector(name, values.length)}{' '}
        <span class="muted">±{numbers.value.significant(largest)}</span>
      </figcaption>
      <svg
        viewBox={`0 -1 ${values.length} 2`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name}: ${[...values].map((value) => value.toPrecision(3)).join(', ')}`}
      >
        {[...values].map((value, index) => {
          const height = Math.abs(value) / largest;
          return (
            <rect
              key={index}
              x={index + gap / 2}
              width={1 - gap}
              y={value > 0 ? -height : 0}
              height={height}
              class="vector-bar"
            >
              <title>{`${index}: ${exactDecimal(value)}`}</title>
            </rect>
          );
        })}
        <line
          x1="0"
          x2={values.length}
          y1="0"
          y2="0"
          class="vector-zero"
          vector-effect="non-scaling-stroke"
        />
      </svg>
    </figure>
  );
}

function Numbers({ row }: { readonly row: CacheRow }) {
  const t = text.value.timeline;
  return (
    <Fold summary={t.exact}>
      {() => (
        <div class="scroll" tabIndex={0} role="group" aria-label={t.exact}>
          <table data-testid="cell-numbers">
            <thead>
              <tr>
                <th scope="col">{t.index}</th>
                <th scope="col">{t.key}</th>
                <th scope="col">{t.value}</th>
              </tr>
            </thead>
            <tbody>
              {[...row.key].map((value, index) => (
                <tr key={index}>
                  <th scope="row">{index}</th>
                  <td>{exactDecimal(value)}</td>
                  <td>{exactDecimal(row.value[index] ?? 0)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Fold>
  );
}

export function CellView() {
  const fetched = useSignal<CacheRow | undefined>(undefined);
  useSignalEffect(() => {
    const current = live.value;
    const { layer, kvHead } = cell.value;
    const at = position.value;
    // After a rewind a call may have replaced the row, so every call asks again.
    void calls.value;
    if (!current || !isLive.value || at < 0) {
      fetched.value = undefined;
      return undefined;
    }
    const { nLayers, nKvHeads } = current.model.config;
    let wanted = true;
    current.session.cache
      .row(Math.min(layer, nLayers - 1), Math.min(kvHead, nKvHeads - 1), at)
      .then(
        (row) => {
          if (wanted) fetched.value = row;
        },
        (error: unknown) => {
          // While another model replaces this one, its cache is gone before its last rows were
          // asked for.
          if (wanted && live.value === current && at < rows.value.length)
            report('cell', asProblem(error));
        },
      );
    return () => {
      wanted = false;
    };
  });
  const t = text.value.timeline;
  const shown = rows.value[position.value];
  const row = fetched.value;
  if (!shown || !trace.value) return null;
  const { layer, kvHead } = cell.value;
  return (
    <div class="cell" data-testid="cell">
      <h3>
        {t.cellHeading}{' '}
        <span class="muted">
          · {t.cell(layer, kvHead, position.value, visibleToken(shown.text))}
        </span>
      </h3>
      {!isLive.value && <p class="muted small">{t.cellUnavailable}</p>}
      {row && (
        <>
          <div class="vectors">
            <Vector name={t.keyRow} values={row.key} />
            <Vector name={t.valueRow} values={row.value} />
          </div>
          <Numbers row={row} />
        </>
      )}
      <ProblemAt site="cell" />
    </div>
  );
}
