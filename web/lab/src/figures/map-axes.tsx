// What surrounds and underlies the weights of a large map: labelled axes, and the marks of cells
// without a weight. The cell that is looked at is named on both axes.
import type { FigureMessages } from '../i18n/en-figures.js';
import {
  axisLabel,
  LABEL_ANGLE,
  LABEL_PITCH,
  labelledPositions,
  leaningHeight,
  tickAt,
  type MapLayout,
  uncapturedPath,
} from './map-layout.js';
import { DOTS, HATCH, Patterns } from './patterns.js';
import type { AttentionMatrix, Cell } from './types.js';

interface MapAxesProps {
  readonly layout: MapLayout;
  readonly tokens: readonly string[];
  /** Width of the row labels. */
  readonly gutter: number;
  readonly matrix: AttentionMatrix;
  readonly active: Cell | null;
  /** The row of this query is outlined. */
  readonly selected?: number | undefined;
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

export function MapAxes(props: MapAxesProps) {
  const { layout, tokens, gutter, matrix, active, selected, messages } = props;
  const { side } = layout;
  const { height } = axesFrame(gutter, side);
  const query = active?.query ?? selected;
  const text = (position: number) => axisLabel(position, tokens[position] ?? '');
  const cls = (position: number, of: number | undefined) =>
    position === of ? 'kv-tick kv-tick-active' : 'kv-tick';
  return (
    <g class="kv-axes-text">
      <Patterns />
      <g transform={`translate(${gutter + GAP}, ${TITLE})`}>
        <rect class="kv-map-ground" width={side} height={side} fill={HATCH} />
        <path d={uncapturedPath(layout, matrix)} fill={DOTS} />
      </g>
      <text class="kv-axis-title" x={0} y={TITLE - 8}>
        ↓ {messages.map.queries}
      </text>
      <g transform={`translate(${gutter}, ${TITLE})`}>
        {labels(layout, query).map((position) => (
          <text
            key={position}
            class={cls(position, query)}
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
    </g>
  );
}

/** Where the weights are, `side` wide and high, and the size of the whole. */
export function axesFrame(gutter: number, side: number) {
  const left = gutter + GAP;
  return {
    left,
    top: TITLE,
    width: left + side,
    height: TITLE + side + GAP + leaningHeight(gutter) + TITLE,
  };
}
