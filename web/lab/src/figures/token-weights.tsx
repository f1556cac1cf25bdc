// What one token attends to and what attends to it, on the text itself: a bar below a token for the
// weight that it gets, a bar above for the weight that it gives. Height and tint say the same; the
// number is read on hover and on focus. Arrow keys move the focus, Enter chooses the token that has
// it.
import { Component } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { scaled } from './colour-scale.js';
import { exactDecimal } from '../format.js';
import { useThrottled } from './hooks.js';
import type { FigureMessages } from '../i18n/en-figures.js';
import type { Announce, HeadRef, MapStyle } from './types.js';

export interface TokenWeightsProps {
  readonly tokens: readonly string[];
  /** Position of the token looked at. */
  readonly selected: number;
  /** What it gives to each position up to it. */
  readonly outgoing: ArrayLike<number> | undefined;
  /** What each position from it on gives to it. */
  readonly incoming: ArrayLike<number> | undefined;
  readonly head: HeadRef;
  readonly onSelect: (position: number) => void;
  readonly messages: FigureMessages;
  /** Its scale and its hidden sink hold for the bars too. */
  readonly mapStyle?: MapStyle;
  readonly onAnnounce?: Announce;
}

/**
 * Heights that are told apart; most weights are near 0, and so most chips stay as they are from row
 * to row.
 */
const STEPS = 22;

interface ChipProps {
  readonly position: number;
  readonly token: string;
  readonly name: string;
  readonly selected: boolean;
  readonly focusable: boolean;
  /** 0..1, for heights and tints. */
  readonly below: number;
  readonly above: number;
}

/** Bars are backgrounds: elements for them would triple what there is to lay out and paint. */
function bars(below: number, above: number): Record<string, string> {
  const style: Record<string, string> = {};
  for (const [name, place] of [
    ['out', below],
    ['in', above],
  ] as const) {
    if (place === 0) continue;
    style[`--${name}`] = String(place);
    style[`--${name}-tint`] = `${Math.round(45 + 55 * place)}%`;
  }
  return style;
}

/** One token. It is redrawn only when it changed, since there may be thousands. */
class Chip extends Component<ChipProps> {
  override shouldComponentUpdate(next: ChipProps): boolean {
    return (Object.keys(next) as (keyof ChipProps)[]).some(
      (name) => next[name] !== this.props[name],
    );
  }

  override render({ position, token, name, selected, focusable, below, above }: ChipProps) {
    return (
      <span
        role="option"
        class={below > 0 || above > 0 ? 'kv-chip kv-chip-weighted' : 'kv-chip'}
        data-position={position}
        tabIndex={focusable ? 0 : -1}
        aria-selected={selected}
        aria-label={name}
        style={bars(below, above)}
      >
        {token}
      </span>
    );
  }
}

/** Largest of the weights that are shown. */
function largest(weights: ArrayLike<number> | undefined, from: number): number {
  let max = 0;
  for (let i = from; i < (weights?.length ?? 0); ++i) max = Math.max(max, weights![i] || 0);
  return max;
}

/** From this many tokens on, following every row of a fast decode would cost frames. */
const LONG = 256;
/** Between two drawings of a long text that grows. */
const PAUSE = 200;

export function TokenWeights(props: TokenWeightsProps) {
  const { length } = props.tokens;
  return <TokenWeightsNow {...useThrottled(props, length, length > LONG ? PAUSE : 0)} />;
}

function TokenWeightsNow(props: TokenWeightsProps) {
  const { tokens, selected, outgoing, incoming, head, onSelect, messages, mapStyle, onAnnounce } =
    props;
  const list = useRef<HTMLDivElement>(null);
  const [read, setRead] = useState<number | null>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const kind = mapStyle?.scale ?? 'linear';
  const firstKey = mapStyle?.hideSink ? 1 : 0;
  const largestOutgoing = useMemo(() => largest(outgoing, firstKey), [outgoing, firstKey]);
  const largestIncoming = useMemo(() => largest(incoming, selected), [incoming, selected]);

  const weightTo = (position: number) => (position <= selected ? outgoing?.[position] : undefined);
  const weightFrom = (position: number) =>
    position >= selected ? incoming?.[position] : undefined;
  const exact = (weight: number | undefined) =>
    weight === undefined ? undefined : exactDecimal(weight);
  const name = (position: number) =>
    messages.weights.token(
      { position, token: tokens[position] ?? '' },
      exact(weightTo(position)),
      exact(weightFrom(position)),
    );
  const bar = (weight: number | undefined, maximum: number) =>
    weight === undefined || maximum === 0
      ? 0
      : Math.round(STEPS * scaled(kind, weight, maximum)) / STEPS;

  const choose = (position: number) => {
    onSelect(position);
    onAnnounce?.(messages.weights.selected({ position, token: tokens[position] ?? '' }));
  };
  const positionOf = (event: Event) => {
    const chip = (event.target as Element).closest<HTMLElement>('[data-position]');
    return chip ? Number(chip.dataset['position']) : null;
  };
  const last = tokens.length - 1;
  const within = (position: number | null) =>
    position !== null && position <= last ? position : null;
  const focusable = within(focused) ?? Math.min(selected, last);
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Readonly<Record<string, number>> = {
      ArrowLeft: focusable - 1,
      ArrowRight: focusable + 1,
      Home: 0,
      End: last,
    };
    const to = moves[event.key];
    if (event.key === 'Enter' || event.key === ' ') choose(focusable);
    else if (to !== undefined) {
      list.current
        ?.querySelector<HTMLElement>(`[data-position="${Math.max(0, Math.min(last, to))}"]`)
        ?.focus();
    } else return;
    event.preventDefault();
  };
  const onFocus = (position: number | null) => {
    setFocused(position);
    setRead(position);
    if (position !== null) onAnnounce?.(name(position));
  };

  const shown = within(read);
  // Names with numbers where the focus is or can go next; the others are too many to keep up with
  // every row.
  const named = new Set([shown, focusable - 1, focusable, focusable + 1, 0, last]);
  const place = (position: number) =>
    messages.weights.token({ position, token: tokens[position] ?? '' }, undefined, undefined);
  return (
    <figure class="kv-figure kv-weights">
      <div
        role="listbox"
        ref={list}
        class="kv-chips"
        aria-orientation="horizontal"
        aria-label={messages.weights.label(head.layer, head.head)}
        onKeyDown={onKeyDown}
        onClick={(event) => {
          const position = positionOf(event);
          if (position !== null) choose(position);
        }}
        onPointerOver={(event) => setRead(positionOf(event))}
        onPointerLeave={() => setRead(focused)}
        onFocusIn={(event) => onFocus(positionOf(event))}
        onFocusOut={() => onFocus(null)}
      >
        {tokens.map((token, position) => (
          <Chip
            key={position}
            position={position}
            token={token}
            name={named.has(position) ? name(position) : place(position)}
            selected={position === selected}
            focusable={position === focusable}
            below={position < firstKey ? 0 : bar(weightTo(position), largestOutgoing)}
            above={bar(weightFrom(position), largestIncoming)}
          />
        ))}
      </div>
      <figcaption>
        <p class="kv-readout">{shown === null ? messages.weights.hint : name(shown)}</p>
        <p class="kv-note kv-weights-key">
          <span>
            <i class="kv-key kv-key-outgoing" aria-hidden="true" /> {messages.weights.outgoing}
          </span>
          <span>
            <i class="kv-key kv-key-incoming" aria-hidden="true" /> {messages.weights.incoming}
          </span>
          <span>
            {messages.legend.weight}, {messages.controls.scales[kind]}
          </span>
          {incoming === undefined && tokens.length > 0 && (
            <span>{messages.weights.incomingUnknown}</span>
          )}
        </p>
      </figcaption>
    </figure>
  );
}
