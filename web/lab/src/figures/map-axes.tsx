// The labelled axes of a large map, around its canvas. The cell that is looked at is named on both.
import type { Cell } from './types.js';
import {
  axisLabel,
  LABEL_ANGLE,
  LABEL_PITCH,
  labelledPositions,
  leaningHeight,
  tickAt,
  type MapLayout,
} from './map-layout.js';
import type { FigureMessages } from './messages.js';

interface MapAxesProps {
  readonly layout: MapLayout;
  readonly tokens: readonly string[];
  /** Width of the row labels. */
  readonly gutter: number;
  readonly active: Cell | null;
  readonly messages: FigureMessages;
}

/** Between the map and its labels. */
const GAP = 6;
/** Height of the line that names an axis. */
export const TITLE = 20;

/** Labels that are shown: those that fit, and `active` in place of what it would touch. */
function labels(layout: MapLayout, active: number | undefined): number[] {
  const positions = labelledPositions(layout);
  if (active === undefined) return positions;
  const apart = (position: number) =>
    Math.abs(tickAt(layout, position) - tickAt(layout, active)) >= LABEL_PITCH;
  return [...positions.filter((position) => position !== active && apart(position)), active];
}

export function MapAxes({ layout, tokens, gutter, active, messages }: MapAxesProps) {
  const { side } = layout;
  const height = TITLE + side + GAP + leaningHeight(gutter) + TITLE;
  const text = (position: number) => axisLabel(position, tokens[position] ?? '');
  const cls = (position: number, of: number | undefined) =>
    position === of ? 'kv-tick kv-tick-active' : 'kv-tick';
  return (
    <svg class="kv-map-axes" width={gutter + GAP + side} height={height} aria-hidden="true">
      <text class="kv-axis-title" x={0} y={TITLE - 8}>
        ↓ {messages.map.queries}
      </text>
      <g transform={`translate(${gutter}, ${TITLE})`}>
        {labels(layout, active?.query).map((position) => (
          <text
            key={position}
            class={cls(position, active?.query)}
            y={tickAt(layout, position)}
            dy="0.35em"
          >
            {text(position)}
          </text>
        ))}
      </g>
      <g transform={`translate(${gutter + GAP}, ${TITLE + side + GAP})`}>
        {labels(layout, active?.key).map((position) => (
          <text
            key={position}
            class={cls(position, active?.key)}
            transform={`translate(${tickAt(layout, position) + 3}, 6) rotate(${LABEL_ANGLE})`}
          >
            {text(position)}
          </text>
        ))}
      </g>
      <text class="kv-axis-title kv-axis-title-end" x={gutter + GAP + side} y={height - 6}>
        {messages.map.keys} →
      </text>
    </svg>
  );
}

/** Size of what surrounds the canvas. */
export function axesFrame(gutter: number): { left: number; top: number; bottom: number } {
  return { left: gutter + GAP, top: TITLE, bottom: GAP + leaningHeight(gutter) + TITLE };
}
