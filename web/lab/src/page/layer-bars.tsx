// The cache as bars: one bar per layer, a strip per KV head, a cell per row. The style sheet draws
// the cells: a strip has one element per run of equal phases, however many rows it has.
import { useSignal } from '@preact/signals';
import { visibleToken } from '../format.js';
import { text } from '../i18n/index.js';
import { announce, calls, cell, pinnedPosition, position, rows, trace } from '../state/store.js';
import type { Row } from '../state/trace.js';

interface Run {
  readonly phase: Row['phase'];
  readonly begin: number;
  readonly end: number;
}

/** Runs of rows that calls of one phase appended; those of the last call are a run of their own. */
function runsOf(held: readonly Row[], lastCall: number): Run[] {
  const runs: Run[] = [];
  held.forEach((row, index) => {
    const last = runs.at(-1);
    const before = held[index - 1];
    const joins =
      last && before?.phase === row.phase && (before.call === lastCall) === (row.call === lastCall);
    if (joins) runs[runs.length - 1] = { ...last, end: index + 1 };
    else runs.push({ phase: row.phase, begin: index, end: index + 1 });
  });
  return runs;
}

/**
 * Rows that the scale has room for: it doubles as the cache grows, so that a new row is seen to be
 * one.
 */
function roomFor(length: number, capacity: number): number {
  let room = Math.min(16, capacity);
  while (room < length) room *= 2;
  return Math.min(room, Math.max(capacity, length));
}

function ticksOf(room: number): number[] {
  const step = room <= 8 ? 1 : room / 4;
  return Array.from({ length: Math.floor(room / step) + 1 }, (_, index) =>
    Math.round(index * step),
  );
}

interface StripProps {
  readonly layer: number;
  readonly kvHead: number;
  readonly group: number;
  readonly runs: readonly Run[];
  readonly room: number;
  readonly selected: boolean;
}

function Strip({ layer, kvHead, group, runs, room, selected }: StripProps) {
  const t = text.value.timeline;
  const queries = Array.from({ length: group }, (_, index) => kvHead * group + index);
  const percent = (n: number): string => `${(100 * n) / room}%`;
  return (
    <div class={`strip ${selected ? 'strip-selected' : ''}`} data-layer={layer} data-head={kvHead}>
      <span class="strip-label">
        <span>{t.serves(queries)}</span>
        <svg viewBox="0 0 10 8" aria-hidden="true">
          <path d="M0 1h4l2 3-2 3H0M6 4h4" />
        </svg>
        <span>{t.kvHead(kvHead)}</span>
      </span>
      <span class="strip-track" style={{ '--room': room }}>
        {runs.map(({ phase, begin, end }, index) => (
          <span
            key={begin}
            class={`strip-run run-${phase} ${index === runs.length - 1 ? 'run-newest' : ''} ${room > 160 ? 'run-dense' : ''}`}
            style={{ left: percent(begin), width: percent(end - begin), '--rows': end - begin }}
          />
        ))}
      </span>
    </div>
  );
}

function placeOf(
  event: PointerEvent | MouseEvent,
  room: number,
): { layer: number; kvHead: number; at: number } | undefined {
  const strip = (event.target as HTMLElement).closest<HTMLElement>('.strip');
  const track = strip?.querySelector('.strip-track');
  if (!strip || !track) return undefined;
  const box = track.getBoundingClientRect();
  const at = Math.floor(((event.clientX - box.left) / box.width) * room);
  if (at < 0 || at >= rows.value.length) return undefined;
  return { layer: Number(strip.dataset.layer), kvHead: Number(strip.dataset.head), at };
}

export function LayerBars() {
  const hovered = useSignal<string | undefined>(undefined);
  const messages = text.value;
  const t = messages.timeline;
  const model = trace.value?.model;
  const held = rows.value;
  if (!model || held.length === 0) return null;
  const { nLayers, nHeads, nKvHeads } = model.config;
  const group = nHeads / nKvHeads;
  const room = roomFor(held.length, model.capacity);
  const runs = runsOf(held, calls.value.length - 1);
  const { layer, kvHead } = cell.value;
  const describe = (inLayer: number, head: number, at: number): string =>
    t.cell(inLayer, head, at, visibleToken(held[at]?.text ?? ''));

  const move = (event: KeyboardEvent): void => {
    const flat = layer * nKvHeads + kvHead;
    const last = nLayers * nKvHeads - 1;
    let head = flat;
    let at = position.value;
    if (event.key === 'ArrowLeft') at -= 1;
    else if (event.key === 'ArrowRight') at += 1;
    else if (event.key === 'ArrowUp') head -= 1;
    else if (event.key === 'ArrowDown') head += 1;
    else if (event.key === 'Home') at = 0;
    else if (event.key === 'End') at = held.length - 1;
    else return;
    event.preventDefault();
    head = Math.max(0, Math.min(last, head));
    at = Math.max(0, Math.min(held.length - 1, at));
    const next = { layer: Math.floor(head / nKvHeads), kvHead: head % nKvHeads };
    cell.value = next;
    pinnedPosition.value = at;
    announce(describe(next.layer, next.kvHead, at));
    const bars = event.currentTarget as HTMLElement;
    requestAnimationFrame(() =>
      bars.querySelector('.strip-selected')?.scrollIntoView({ block: 'nearest' }),
    );
  };

  return (
    <div class="bars-block">
      <div class="bars-head">
        <h3>{t.bars}</h3>
        <p class="muted small">{group > 1 ? t.shared(group, nKvHeads) : t.own}</p>
      </div>
      <div
        class="bars"
        role="slider"
        tabIndex={0}
        aria-label={`${t.bars}. ${t.barsHelp}`}
        aria-valuemin={0}
        aria-valuemax={held.length - 1}
        aria-valuenow={position.value}
        aria-valuetext={describe(layer, kvHead, position.value)}
        data-testid="bars"
        data-rows={held.length}
        onKeyDown={move}
        onClick={(event) => {
          const place = placeOf(event, room);
          if (!place) return;
          cell.value = { layer: place.layer, kvHead: place.kvHead };
          pinnedPosition.value = place.at;
        }}
        onPointerMove={(event) => {
          const place = placeOf(event, room);
          hovered.value = place && describe(place.layer, place.kvHead, place.at);
        }}
        onPointerLeave={() => (hovered.value = undefined)}
      >
        <div class="bars-layers">
          {Array.from({ length: nLayers }, (_, inLayer) => (
            <div key={inLayer} class="bar">
              <span class="bar-label">
                {t.layer(inLayer)}
                <span class="muted"> · {t.rows(held.length)}</span>
              </span>
              {Array.from({ length: nKvHeads }, (_, head) => (
                <Strip
                  key={head}
                  layer={inLayer}
                  kvHead={head}
                  group={group}
                  runs={runs}
                  room={room}
                  selected={inLayer === layer && head === kvHead}
                />
              ))}
            </div>
          ))}
          <div class="bars-guide" aria-hidden="true">
            <span
              style={{
                left: `${(100 * position.value) / room}%`,
                width: `max(2px, ${100 / room}%)`,
              }}
            />
          </div>
        </div>
        <div class="bars-axis" aria-hidden="true">
          {ticksOf(room).map((tick) => (
            <span key={tick} style={{ left: `${(100 * tick) / room}%` }}>
              {tick}
            </span>
          ))}
        </div>
      </div>
      <p class="readout small">{hovered.value ?? t.barsHint}</p>
    </div>
  );
}
