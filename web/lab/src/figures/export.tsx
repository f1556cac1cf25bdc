// Figures as files that stand alone. The very components of the page are rendered once more, out of
// sight; their computed colours and fonts are written into the SVG, and PNG is made from it.
import { render, type ComponentChildren } from 'preact';
import type { FigureMessages } from '../i18n/en-figures.js';
import type { AttentionStore } from './attention-store.js';
import { LegendRamp, legendMarks, LegendSwatch, RAMP_HEIGHT, RAMP_WIDTH } from './legend.js';
import { axesFrame, MapAxes } from './map-axes.js';
import { MapImage } from './map-image.js';
import { labelWidth, layoutMap } from './map-layout.js';
import { SIDE } from './pooled-map.js';
import { ThumbnailFrame } from './thumbnail-frame.js';
import { ThumbnailImage } from './thumbnail-image.js';
import { layoutThumbnails } from './thumbnail-layout.js';
import type { AttentionMatrix, HeadRef, MapStyle } from './types.js';
import { WorkKeyMark, workKey, WorkMarks } from './work-marks.js';
import { plotWork, type WorkAxes } from './work-scales.js';
import type { WorkMetric, WorkPoint } from './work-series.js';

/** A map of up to this many cells along a side is made of rectangles, a larger one of an image. */
const MAX_RECTANGLES = 48;
const PADDING = 16;
const TITLE = 28;
/** Between two lines of a key. */
const LINE = 20;

/** What style sheets decide about the drawings. */
const properties = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'font-family',
  'font-size',
  'font-weight',
  'text-anchor',
];

interface Sheet {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly children: ComponentChildren;
}

/** The text of an SVG file with the drawing under its title. */
function svgFile({ title, width, height, children }: Sheet): string {
  const host = document.createElement('div');
  host.className = 'hidden-visually';
  document.body.append(host);
  const [outerWidth, outerHeight] = [width + 2 * PADDING, height + TITLE + 2 * PADDING];
  try {
    render(
      <svg
        width={outerWidth}
        height={outerHeight}
        viewBox={`0 0 ${outerWidth} ${outerHeight}`}
        role="img"
        class="kv-export"
      >
        <title>{title}</title>
        <rect class="kv-export-ground" width={outerWidth} height={outerHeight} />
        <text class="kv-export-title" x={PADDING} y={PADDING + 12}>
          {title}
        </text>
        <g transform={`translate(${PADDING} ${PADDING + TITLE})`}>{children}</g>
      </svg>,
      host,
    );
    const svg = host.firstElementChild!;
    for (const element of [svg, ...svg.querySelectorAll('[class]')]) {
      const style = getComputedStyle(element);
      for (const name of properties) {
        // A presentation attribute, such as a fill of the drawing's own, says the same.
        const value = style.getPropertyValue(name);
        if (value !== '') element.setAttribute(name, value.replace(/url\("(#[^"]+)"\)/, 'url($1)'));
      }
      element.removeAttribute('class');
    }
    return (
      new XMLSerializer()
        .serializeToString(svg)
        // XML allows no control characters, not even escaped ones.
        // eslint-disable-next-line no-control-regex
        .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '\ufffd')
    );
  } finally {
    render(null, host);
    host.remove();
  }
}

/** The left upper `size` x `size` pixels from (`x`, `y`) on, as the address of an image. */
function imageOf(
  pixels: Uint32Array<ArrayBuffer>,
  stride: number,
  [x, y]: readonly [number, number],
  size: number,
): string {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = size;
  const bytes = new Uint8ClampedArray(pixels.buffer);
  const data = new ImageData(bytes, stride, pixels.length / stride);
  canvas.getContext('2d')!.putImageData(data, -x, -y, x, y, size, size);
  return canvas.toDataURL('image/png');
}

/** An image whose pixels stay squares. */
function Pixels({ side, href }: { readonly side: number; readonly href: string }) {
  return <image width={side} height={side} style={{ imageRendering: 'pixelated' }} href={href} />;
}

interface LegendProps {
  readonly y: number;
  readonly mapStyle: MapStyle;
  readonly maximum: number;
  readonly messages: FigureMessages;
  readonly partial: boolean;
}

function Legend({ y, partial, ...props }: LegendProps) {
  return (
    <g transform={`translate(0 ${y})`}>
      <LegendRamp {...props} />
      <g class="kv-legend-text">
        {legendMarks(props, partial).map(({ fill, label }, i) => (
          <g key={label} transform={`translate(${RAMP_WIDTH + 24} ${i * LINE})`}>
            <LegendSwatch fill={fill} />
            <text x="28" y="11">
              {label}
            </text>
          </g>
        ))}
      </g>
    </g>
  );
}

const LEGEND_HEIGHT = Math.max(RAMP_HEIGHT, 3 * LINE);
const LEGEND_WIDTH = RAMP_WIDTH + 200;

export interface MapExport {
  readonly matrix: AttentionMatrix;
  readonly head: HeadRef;
  readonly tokens: readonly string[];
  readonly mapStyle: MapStyle;
  readonly messages: FigureMessages;
}

/** The large map with axes and legend. */
export function mapSvg({ matrix, head, tokens, mapStyle, messages }: MapExport): string {
  const layout = layoutMap(matrix.length, 720, 1);
  const gutter = labelWidth(tokens, matrix.length);
  const { left, top, width, height } = axesFrame(gutter, layout.side);
  const { cells, cell, side } = layout;
  const image = new MapImage();
  image.update(matrix, mapStyle, layout.block);
  const partial = Array.from({ length: matrix.length }, (_, query) => query).some(
    (query) => !matrix.has(query),
  );
  return svgFile({
    title: messages.map.label(head.layer, head.head),
    width: Math.max(width, LEGEND_WIDTH),
    height: height + 12 + LEGEND_HEIGHT,
    children: (
      <>
        <MapAxes {...{ layout, tokens, gutter, matrix, messages }} active={null} />
        <g transform={`translate(${left} ${top})`}>
          {cells > MAX_RECTANGLES ? (
            <Pixels side={side} href={imageOf(image.pixels, image.capacity, [0, 0], cells)} />
          ) : (
            <Rectangles image={image} cells={cells} cell={cell} />
          )}
        </g>
        <Legend y={height + 12} maximum={image.maximum} {...{ mapStyle, messages, partial }} />
      </>
    ),
  });
}

/** One rectangle for each pixel that is not transparent. */
function Rectangles(props: {
  readonly image: MapImage;
  readonly cells: number;
  readonly cell: number;
}) {
  const { image, cells, cell } = props;
  const bytes = new Uint8Array(image.pixels.buffer);
  const rectangles = Array.from({ length: cells * cells }, (_, i) => {
    const [line, column] = [Math.floor(i / cells), i % cells];
    const [r, g, b, a] = bytes.subarray(4 * (line * image.capacity + column));
    return a ? (
      <rect
        key={i}
        x={column * cell}
        y={line * cell}
        width={cell}
        height={cell}
        fill={`rgb(${r},${g},${b})`}
      />
    ) : null;
  });
  return <g shape-rendering="crispEdges">{rectangles}</g>;
}

export interface ThumbnailsExport {
  readonly store: AttentionStore;
  readonly mapStyle: MapStyle;
  readonly messages: FigureMessages;
}

/** All thumbnails with the numbers of layers and heads. */
export function thumbnailsSvg({ store, mapStyle, messages }: ThumbnailsExport): string {
  const { nLayers, nHeads } = store;
  const layout = layoutThumbnails(nLayers, nHeads, 1000);
  const image = new ThumbnailImage(store);
  image.update(mapStyle);
  const layers = Array.from({ length: nLayers }, (_, layer) => layer);
  const uncaptured = layers.map((layer) => image.uncaptured(layer));
  const partial = store.partialLayers() > 0;
  return svgFile({
    title: messages.thumbnails.label,
    width: Math.max(layout.width, LEGEND_WIDTH),
    height: layout.height + 24 + LEGEND_HEIGHT,
    children: (
      <>
        <ThumbnailFrame {...{ layout, nLayers, nHeads, uncaptured, messages }} />
        {layers.flatMap((layer) => {
          const blocks = image.blocks(layer);
          if (blocks === 0) return [];
          return Array.from({ length: nHeads + 1 }, (_, column) => (
            <g
              key={`${layer} ${column}`}
              transform={`translate(${layout.x(column)} ${layout.y(layer)})`}
            >
              <Pixels
                side={layout.tile}
                href={imageOf(image.pixels, image.width, [column * SIDE, layer * SIDE], blocks)}
              />
            </g>
          ));
        })}
        <Legend
          y={layout.height + 24}
          maximum={image.maximum}
          {...{ mapStyle, messages, partial }}
        />
      </>
    ),
  });
}

export interface WorkExport {
  readonly points: readonly WorkPoint[];
  readonly metric: WorkMetric;
  readonly axes: WorkAxes;
  readonly messages: FigureMessages;
}

/** The chart of avoided work with its key. */
export function workSvg({ points, metric, axes, messages }: WorkExport): string {
  const plot = plotWork(points, metric, axes, 800, 420, messages.locale);
  const key = workKey(messages);
  return svgFile({
    title: messages.work.label(metric),
    width: plot.width,
    height: plot.height + 12 + key.length * LINE,
    children: (
      <>
        <WorkMarks {...{ plot, metric, messages }} active={null} />
        <g class="kv-legend-text">
          {key.map(({ mark, label }, i) => (
            <g
              key={mark}
              transform={`translate(${plot.margin.left} ${plot.height + 12 + i * LINE})`}
            >
              <WorkKeyMark mark={mark} />
              <text x="36" y="10">
                {label}
              </text>
            </g>
          ))}
        </g>
      </>
    ),
  });
}

export function svgBlob(svg: string): Blob {
  return new Blob([svg], { type: 'image/svg+xml' });
}

/** The SVG as pixels, `scale` of them per unit of length. */
export async function pngBlob(
  svg: string,
  { scale = 2 }: { readonly scale?: number } = {},
): Promise<Blob> {
  const address = URL.createObjectURL(svgBlob(svg));
  try {
    const drawing = new Image();
    drawing.src = address;
    await drawing.decode();
    const canvas = document.createElement('canvas');
    canvas.width = Math.round(drawing.naturalWidth * scale);
    canvas.height = Math.round(drawing.naturalHeight * scale);
    canvas.getContext('2d')!.drawImage(drawing, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob(
        (blob) => (blob ? resolve(blob) : reject(new Error('the figure is too large for a PNG'))),
        'image/png',
      ),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}
