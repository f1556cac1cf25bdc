// What surrounds and underlies the thumbnails: the numbers of layers and heads, and the marks of
// cells without a weight.
import type { FigureMessages } from '../i18n/en-figures.js';
import { DOTS, HATCH, Patterns } from './patterns.js';
import { LEFT, TOP, type ThumbnailLayout } from './thumbnail-layout.js';

interface ThumbnailFrameProps {
  readonly layout: ThumbnailLayout;
  readonly nLayers: number;
  readonly nHeads: number;
  /** By layer: the cells that were not captured, as path data in units of a thumbnail's side. */
  readonly uncaptured: readonly string[];
  readonly messages: FigureMessages;
}

export function ThumbnailFrame(props: ThumbnailFrameProps) {
  const { layout, nLayers, nHeads, uncaptured, messages } = props;
  const { tile, x, y, name } = layout;
  const columns = Array.from({ length: nHeads + 1 }, (_, column) => column);
  return (
    <g class="kv-axes-text">
      <Patterns />
      {columns.map((column) => (
        <text
          key={column}
          class="kv-thumbnails-name"
          x={name(column).x + name(column).width / 2}
          y={TOP - 6}
          text-anchor="middle"
        >
          {column === nHeads ? messages.thumbnails.meanColumn : column}
        </text>
      ))}
      {Array.from({ length: nLayers }, (_, layer) => (
        <g key={layer}>
          <text
            class="kv-thumbnails-name"
            x={LEFT / 2}
            y={y(layer) + tile / 2}
            dy="0.35em"
            text-anchor="middle"
          >
            {layer}
          </text>
          {columns.map((column) => (
            <g key={column} transform={`translate(${x(column)}, ${y(layer)})`}>
              <rect width={tile} height={tile} fill={HATCH} />
              {uncaptured[layer] && (
                <g fill={DOTS}>
                  <path d={scaledPath(uncaptured[layer], tile)} />
                </g>
              )}
            </g>
          ))}
        </g>
      ))}
    </g>
  );
}

/** Stretches a path of the unit square to `side`; a transform would stretch the dots too. */
const scaledPath = (path: string, side: number): string =>
  path.replace(/[\d.]+/g, (part) => String(Math.round(Number(part) * side * 100) / 100));
