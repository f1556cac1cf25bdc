// One chip a position, and under them the rows that the cache holds of each.
import type { VNode } from 'preact';
import { text, type Messages } from '../i18n/index.js';
import { visibleToken } from '../format.js';
import { forkAt, obstacle } from '../state/forward.js';
import { stopPlaying } from '../state/play.js';
import { calls, isLive, pending, pinnedPosition, position, rows, trace } from '../state/store.js';
import { sameHashes, type Row, type RowsCheck } from '../state/trace.js';
import { Button, Verdict } from '../ui/controls.jsx';
import { Fold } from '../ui/fold.jsx';
import { chipClass, Piece } from '../ui/token-chip.jsx';
import { CellView } from './cell-view.jsx';
import { LayerBars } from './layer-bars.jsx';

function pin(event: MouseEvent): void {
  const chip = (event.target as HTMLElement).closest<HTMLElement>('[data-position]');
  if (!chip) return;
  const chosen = Number(chip.dataset.position);
  pinnedPosition.value = pinnedPosition.value === chosen ? null : chosen;
}

/** Arrow keys move along the chips, of which one is in the tab order. */
function walk(event: KeyboardEvent): void {
  const steps: Readonly<Record<string, number>> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    Home: -Infinity,
    End: Infinity,
  };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const next = Math.max(0, Math.min(rows.value.length - 1, position.value + step));
  pinnedPosition.value = next;
  const list = event.currentTarget as HTMLElement;
  list.querySelector<HTMLElement>(`[data-position="${next}"]`)?.focus();
}

interface ChipState {
  readonly row: Row;
  readonly index: number;
  readonly selected: boolean;
  readonly newest: boolean;
  readonly messages: Messages;
}

// A row never changes, so its chip is drawn once for each look it can have: with hundreds of chips
// a decode then costs two of them.
const drawn = new WeakMap<Row, { readonly state: ChipState; readonly node: VNode }>();

function chip(state: ChipState): VNode {
  const { row, index, selected, newest, messages } = state;
  const known = drawn.get(row);
  if (
    known?.state.index === index &&
    known.state.selected === selected &&
    known.state.newest === newest &&
    known.state.messages === messages
  ) {
    return known.node;
  }
  const label = messages.timeline.chip(
    visibleToken(row.text),
    row.id,
    index,
    messages.timeline.phases[row.phase],
  );
  const node = (
    <li key={index}>
      <button
        type="button"
        class={`${chipClass(row.phase)} ${newest ? 'chip-newest' : ''}`}
        data-position={index}
        aria-label={label}
        title={label}
        aria-pressed={selected}
        tabIndex={selected ? 0 : -1}
      >
        <Piece text={row.text} />
      </button>
    </li>
  );
  drawn.set(row, { state, node });
  return node;
}

function Chips() {
  const messages = text.value;
  const held = rows.value;
  const selected = position.value;
  const lastCall = calls.value.length - 1;
  if (held.length + pending.value.length === 0)
    return <p class="muted">{messages.timeline.empty}</p>;
  return (
    <ol class="chips" data-testid="timeline-chips" onClick={pin} onKeyDown={walk}>
      {held.map((row, index) =>
        chip({ row, index, selected: index === selected, newest: row.call === lastCall, messages }),
      )}
      {pending.value.map((token, index) => (
        <li key={`waiting-${index}`} class={chipClass('waiting')} title={messages.timeline.pending}>
          <Piece text={token.text} />
        </li>
      ))}
    </ol>
  );
}

function Legend() {
  const t = text.value.timeline;
  return (
    <ul class="legend" aria-label={t.legend}>
      {(['prefill', 'decode'] as const).map((phase) => (
        <li key={phase}>
          <span class={`${chipClass(phase)} chip-sample`} aria-hidden="true" />
          {t.phases[phase]}
        </li>
      ))}
      <li>
        <span class="newest-sample" aria-hidden="true" />
        {t.newest}
      </li>
    </ul>
  );
}

/** The check of what was there before the last call or fork. */
function lastCheck(): RowsCheck | undefined {
  const shown = trace.value;
  const fork = shown?.forks.at(-1);
  if (fork && fork.afterCalls === shown?.calls.length) return fork.check;
  return shown?.calls.at(-1)?.check;
}

export function UnchangedMark() {
  const t = text.value.timeline;
  const check = lastCheck();
  if (!check) return null;
  if (check.nRows === 0) return <p class="muted small">{t.firstRows}</p>;
  const good = sameHashes(check.before, check.after);
  return (
    <Fold
      class="check"
      testId="unchanged"
      summary={<Verdict good={good}>{good ? t.unchanged(check.nRows) : t.changed}</Verdict>}
    >
      {() => (
        <>
          <p class="muted small">{t.unchangedHelp(check.nRows)}</p>
          <div class="scroll" tabIndex={0} role="group" aria-label={t.hashes}>
            <table class="hashes">
              <caption class="hidden-visually">{t.hashes}</caption>
              <thead>
                <tr>
                  <th scope="col">{t.layers}</th>
                  <th scope="col">{t.before}</th>
                  <th scope="col">{t.after}</th>
                </tr>
              </thead>
              <tbody>
                {check.before.map((hash, layer) => (
                  <tr key={layer}>
                    <th scope="row">{layer}</th>
                    <td>
                      <code>{hash}</code>
                    </td>
                    <td>
                      <code>{check.after[layer]}</code>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </Fold>
  );
}

function Selection() {
  const messages = text.value;
  const t = messages.timeline;
  const index = position.value;
  const row = rows.value[index];
  if (!row) return null;
  const unavailable = isLive.value ? undefined : messages.run.why[obstacle() ?? 'not_live'];
  return (
    <div class="selection">
      <p>
        <span class="muted">{t.selected}</span> <strong>{index}</strong> <Piece text={row.text} />{' '}
        <span class="muted small">
          id {row.id} · {t.phases[row.phase]}
        </span>
      </p>
      <div class="buttons">
        <Button
          unavailable={unavailable}
          title={t.forkHint}
          onClick={() => {
            stopPlaying();
            return forkAt(index);
          }}
        >
          {index === 0 ? t.forkFirst : t.fork}
        </Button>
        {pinnedPosition.value !== null && (
          <Button kind="plain" onClick={() => (pinnedPosition.value = null)}>
            {t.unpin}
          </Button>
        )}
      </div>
    </div>
  );
}

export function Timeline() {
  const t = text.value.timeline;
  return (
    <section class="block" aria-labelledby="timeline-heading" id="timeline">
      <div class="block-head">
        <h2 id="timeline-heading">{t.heading}</h2>
        <Legend />
      </div>
      <p class="about">{t.about}</p>
      <Chips />
      <Selection />
      <LayerBars />
      <UnchangedMark />
      <CellView />
    </section>
  );
}
