// What one token looks at and what looks at it, on the text itself: a bar below a token for the weight that it
// gets, a bar above for the weight that it gives. Height and tint say the same; the number is read on hover and
// on focus.
import { Component } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { scaled } from './colour-scale.js';
import { exactDecimal } from './format.js';
import type { FigureMessages } from './messages.js';
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

/** Height of a bar of the largest weight. */
const BAR = 14;

interface ChipProps {
  readonly position: number;
  readonly token: string;
  readonly name: string;
  readonly selected: boolean;
  /** 0..1, for heights and tints; -1 for no bar. */
  readonly below: number;
  readonly above: number;
}

const Bar = ({ of, place }: { of: 'outgoing' | 'incoming'; place: number }) => (
  <span
    class={`kv-bar kv-bar-${of}`}
    style={place < 0 ? { visibility: 'hidden' } : { height: `${1 + place * (BAR - 1)}px`, opacity: 0.45 + 0.55 * place }}
  />
);

/** One token; drawn anew only when something of it changed, since there may be thousands. */
class Chip extends Component<ChipProps> {
  override shouldComponentUpdate(next: ChipProps): boolean {
    return (Object.keys(next) as (keyof ChipProps)[]).some((name) => next[name] !== this.props[name]);
  }

  override render({ position, token, name, selected, below, above }: ChipProps) {
    return (
      <span
        role="option"
        class="kv-chip"
        data-position={position}
        tabIndex={selected ? 0 : -1}
        aria-selected={selected}
        aria-label={name}
      >
        <Bar of="incoming" place={above} />
        <span class="kv-chip-text">{token}</span>
        <Bar of="outgoing" place={below} />
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

export function TokenWeights(props: TokenWeightsProps) {
  const { tokens, selected, outgoing, incoming, head, onSelect, messages, mapStyle, onAnnounce } = props;
  const list = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const kind = mapStyle?.scale ?? 'linear';
  const firstKey = mapStyle?.hideSink ? 1 : 0;
  const largestOutgoing = useMemo(() => largest(outgoing, firstKey), [outgoing, firstKey]);
  const largestIncoming = useMemo(() => largest(incoming, selected), [incoming, selected]);

  const weightTo = (position: number) => (position <= selected ? outgoing?.[position] : undefined);
  const weightFrom = (position: number) => (position >= selected ? incoming?.[position] : undefined);
  const exact = (weight: number | undefined) => (weight === undefined ? undefined : exactDecimal(weight));
  const name = (position: number) =>
    messages.weights.token(
      { position, token: tokens[position] ?? '' },
      exact(weightTo(position)),
      exact(weightFrom(position)),
    );
  const bar = (weight: number | undefined, maximum: number) =>
    weight === undefined || maximum === 0 ? -1 : scaled(kind, weight, maximum);

  const choose = (position: number) => {
    onSelect(position);
    onAnnounce?.(messages.weights.selected({ position, token: tokens[position] ?? '' }));
  };
  const positionOf = (event: Event) => {
    const chip = (event.target as Element).closest<HTMLElement>('[data-position]');
    return chip ? Number(chip.dataset['position']) : null;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, Home: -tokens.length, End: tokens.length };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const position = Math.max(0, Math.min(tokens.length - 1, selected + step));
    choose(position);
    list.current?.querySelector<HTMLElement>(`[data-position="${position}"]`)?.focus();
  };

  const shown = hovered !== null && hovered < tokens.length ? hovered : null;
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
        onPointerOver={(event) => setHovered(positionOf(event))}
        onPointerLeave={() => setHovered(null)}
        onFocusIn={(event) => setHovered(positionOf(event))}
        onFocusOut={() => setHovered(null)}
      >
        {tokens.map((token, position) => (
          <Chip
            key={position}
            position={position}
            token={token}
            name={name(position)}
            selected={position === selected}
            below={position < firstKey ? -1 : bar(weightTo(position), largestOutgoing)}
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
          {incoming === undefined && tokens.length > 0 && <span>{messages.weights.incomingUnknown}</span>}
        </p>
      </figcaption>
    </figure>
  );
}
