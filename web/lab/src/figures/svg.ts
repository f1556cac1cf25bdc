// Figures as files that stand alone: SVG text with its colours and fonts inside, and PNG made from
// it.
import type { AttentionStore } from './attention-store.js';
import { ThumbnailImage } from './thumbnail-image.js';
import { hatchSvg } from './hatch.js';
import { legendTicks } from './legend.js';
import { MapImage } from './map-image.js';
import {
  axisLabel,
  LABEL_ANGLE,
  labelledPositions,
  labelWidth,
  layoutMap,
  leaningHeight,
  tickAt,
} from './map-layout.js';
import type { FigureMessages } from './messages.js';
import { LEVELS, rampCss } from './palette.js';
import { SIDE } from './pooled-map.js';
import type { FigureTheme } from './theme.js';
import { layoutThumbnails } from './thumbnail-layout.js';
import type { AttentionMatrix, HeadRef, MapStyle } from './types.js';
import { areaPath, linePath, markedPoints, plotWork, type WorkAxes } from './work-scales.js';
import type { WorkMetric, WorkPoint } from './work-series.js';

/** Up to this many cells along a side a map is made of rectangles, beyond it of one image. */
const MAX_RECTANGLES = 48;
const PADDING = 16;
const TITLE = 28;

const escaped: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};
// Control characters are not allowed in XML, not even escaped.
const escape = (text: string) =>
  text
    .replace(/[&<>"]/g, (char) => escaped[char]!)
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '\ufffd');

interface TextOptions {
  readonly fill: string;
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly size?: number;
  readonly weight?: number;
  readonly family: string;
  readonly transform?: string;
}

function text(x: number, y: number, content: string, options: TextOptions): string {
  const { fill, anchor = 'start', size = 11, weight = 400, family, transform } = options;
  const place = transform ? `transform="${transform}"` : `x="${x}" y="${y}"`;
  return (
    `<text ${place} fill="${fill}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}"` +
    ` font-family="${escape(family)}">${escape(content)}</text>`
  );
}

function standalone(
  width: number,
  height: number,
  title: string,
  theme: FigureTheme,
  body: string,
): string {
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">` +
    `<title>${escape(title)}</title><defs>${hatchSvg('hatch', theme)}</defs>` +
    `<rect width="${width}" height="${height}" fill="${theme.surface}"/>` +
    text(PADDING, PADDING + 12, title, {
      fill: theme.text,
      size: 14,
      weight: 600,
      family: theme.fontSans,
    }) +
    `${body}</svg>`
  );
}

/** `<image>` of a part of `pixels`, each pixel a square. */
function image(
  pixels: Uint32Array<ArrayBuffer>,
  stride: number,
  part: Rectangle,
  at: Rectangle,
): string {
  const canvas = document.createElement('canvas');
  canvas.width = part.width;
  canvas.height = part.height;
  const bytes = new Uint8ClampedArray(pixels.buffer);
  const data = new ImageData(bytes, stride, pixels.length / stride);
  canvas
    .getContext('2d')!
    .putImageData(data, -part.x, -part.y, part.x, part.y, part.width, part.height);
  return (
    `<image x="${at.x}" y="${at.y}" width="${at.width}" height="${at.height}" preserveAspectRatio="none"` +
    ` style="image-rendering:pixelated" href="${canvas.toDataURL('image/png')}"/>`
  );
}

interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The ramp with its ticks, 200 wide and 40 high. */
function legend(
  x: number,
  y: number,
  style: MapStyle,
  maximum: number,
  messages: FigureMessages,
  theme: FigureTheme,
): string {
  const width = 200;
  const stops = Array.from({ length: 17 }, (_, i) => {
    const colour = rampCss(style.palette, Math.min(LEVELS - 1, i * 16));
    return `<stop offset="${i / 16}" stop-color="${colour}"/>`;
  });
  const named = { fill: theme.textMuted, family: theme.fontSans };
  const ticks = legendTicks(style, maximum, messages.locale).map(({ place, label }) => {
    const anchor = place === 0 ? 'start' : place === 1 ? 'end' : 'middle';
    return text(x + place * width, y + 22, label, { ...named, anchor });
  });
  const swatch = (column: number, name: string) =>
    `<rect x="${column}" y="${y}" width="14" height="10" fill="url(#hatch)" stroke="${theme.lineStrong}"/>` +
    text(column + 20, y + 9, name, named);
  return (
    `<linearGradient id="ramp">${stops.join('')}</linearGradient>` +
    `<rect x="${x}" y="${y}" width="${width}" height="10" fill="url(#ramp)" stroke="${theme.lineStrong}" stroke-width="0.5"/>` +
    ticks.join('') +
    text(x, y + 38, `${messages.legend.weight}, ${messages.controls.scales[style.scale]}`, named) +
    swatch(x + width + 24, messages.legend.masked) +
    (style.hideSink ? text(x + width + 24, y + 26, messages.legend.sinkHidden, named) : '')
  );
}

export interface MapExport {
  readonly matrix: AttentionMatrix;
  readonly head: HeadRef;
  readonly tokens: readonly string[];
  readonly mapStyle: MapStyle;
  readonly messages: FigureMessages;
  readonly theme: FigureTheme;
}

/** The large map with axes and legend. */
export function mapSvg({ matrix, head, tokens, mapStyle, messages, theme }: MapExport): string {
  const layout = layoutMap(matrix.length, 720, 1);
  const gutter = labelWidth(tokens, matrix.length);
  const left = PADDING + gutter + 6;
  const top = PADDING + TITLE + 20;
  const { side, cells, cell } = layout;
  const below = top + side + leaningHeight(gutter) + 8;
  const pixels = new MapImage();
  pixels.update(matrix, mapStyle, layout.block);

  const tick = { fill: theme.textMuted, family: theme.fontMono, anchor: 'end' as const };
  const label = (position: number) => axisLabel(position, tokens[position] ?? '');
  const axes = labelledPositions(layout).map((position) => {
    const at = tickAt(layout, position);
    const leaning = `translate(${left + at + 3} ${top + side + 12}) rotate(${LABEL_ANGLE})`;
    return (
      text(left - 6, top + at + 4, label(position), tick) +
      text(0, 0, label(position), { ...tick, transform: leaning })
    );
  });
  const named = { fill: theme.textMuted, family: theme.fontSans };
  const titles =
    text(PADDING, top - 8, `↓ ${messages.map.queries}`, named) +
    text(left + side, below + 8, `${messages.map.keys} →`, { ...named, anchor: 'end' });

  const whole = { x: 0, y: 0, width: cells, height: cells };
  const plot = { x: left, y: top, width: side, height: side };
  const drawn =
    cells > MAX_RECTANGLES
      ? image(pixels.pixels, pixels.capacity, whole, plot)
      : rectangles(pixels, cells, (column, line) => ({
          x: left + column * cell,
          y: top + line * cell,
          width: cell,
          height: cell,
        }));
  const background = `<rect x="${left}" y="${top}" width="${side}" height="${side}" fill="url(#hatch)" stroke="${theme.lineStrong}"/>`;
  const width = Math.max(left + side, PADDING + 460) + PADDING;
  const body =
    background +
    drawn +
    axes.join('') +
    titles +
    legend(PADDING, below + 28, mapStyle, pixels.maximum, messages, theme);
  return standalone(width, below + 84, messages.map.label(head.layer, head.head), theme, body);
}

/** One `<rect>` for each pixel that is not transparent. */
function rectangles(
  { pixels, capacity }: MapImage,
  cells: number,
  at: (column: number, line: number) => Rectangle,
): string {
  const bytes = new Uint8Array(pixels.buffer);
  const parts: string[] = [];
  for (let line = 0; line < cells; ++line) {
    for (let column = 0; column < cells; ++column) {
      const [r, g, b, a] = bytes.subarray(4 * (line * capacity + column));
      const { x, y, width, height } = at(column, line);
      if (a)
        parts.push(
          `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="rgb(${r},${g},${b})"/>`,
        );
    }
  }
  return `<g shape-rendering="crispEdges">${parts.join('')}</g>`;
}

export interface ThumbnailsExport {
  readonly store: AttentionStore;
  readonly mapStyle: MapStyle;
  readonly messages: FigureMessages;
  readonly theme: FigureTheme;
}

/** All thumbnails with the numbers of layers and heads. */
export function thumbnailsSvg({ store, mapStyle, messages, theme }: ThumbnailsExport): string {
  const { nLayers, nHeads } = store;
  const { tile, x, y, width, height } = layoutThumbnails(nLayers, nHeads, 1000);
  const tiles = new ThumbnailImage(store);
  tiles.update(mapStyle);
  const [left, top] = [PADDING, PADDING + TITLE];
  const named = { fill: theme.textMuted, family: theme.fontSans, anchor: 'middle' as const };
  let body = '';
  for (let column = 0; column <= nHeads; ++column) {
    const name = column === nHeads ? messages.thumbnails.meanColumn : String(column);
    body += text(left + x(column) + tile / 2, top + 14, name, named);
  }
  for (let layer = 0; layer < nLayers; ++layer) {
    body += text(left + 10, top + y(layer) + tile / 2 + 4, String(layer), named);
    const blocks = tiles.blocks(layer);
    for (let column = 0; column <= nHeads; ++column) {
      const at = { x: left + x(column), y: top + y(layer), width: tile, height: tile };
      body += `<rect x="${at.x}" y="${at.y}" width="${tile}" height="${tile}" fill="url(#hatch)"/>`;
      if (blocks === 0) continue;
      body += image(
        tiles.pixels,
        tiles.width,
        { x: column * SIDE, y: layer * SIDE, width: blocks, height: blocks },
        at,
      );
    }
  }
  const below = top + height + 20;
  body += legend(left, below, mapStyle, tiles.maximum, messages, theme);
  return standalone(
    Math.max(left + width, 476) + PADDING,
    below + 56,
    messages.thumbnails.label,
    theme,
    body,
  );
}

export interface WorkExport {
  readonly points: readonly WorkPoint[];
  readonly metric: WorkMetric;
  readonly axes: WorkAxes;
  readonly messages: FigureMessages;
  readonly theme: FigureTheme;
}

/** The chart of avoided work with its key. */
export function workSvg({ points, metric, axes, messages, theme }: WorkExport): string {
  const { work } = messages;
  const plot = plotWork(points, metric, axes, 800, 420, messages.locale);
  const { margin, width, height } = plot;
  const [right, bottom] = [width - margin.right, height - margin.bottom];
  const named = { fill: theme.textMuted, family: theme.fontSans };
  const grid = plot.yTicks.map(
    ({ at, label }) =>
      `<path d="M${margin.left} ${at}H${right}" stroke="${theme.grid}"/>` +
      text(margin.left - 8, at + 4, label, { ...named, anchor: 'end' }),
  );
  const ticks = plot.xTicks.map(
    ({ at, label }) =>
      `<path d="M${at} ${bottom}v4" stroke="${theme.lineStrong}"/>` +
      text(at, bottom + 17, label, { ...named, anchor: 'middle' }),
  );
  const cachedDot = (x: number, y: number) =>
    `<circle cx="${x}" cy="${y}" r="3" fill="${theme.cached}"/>`;
  const measured = (x: number, y: number) =>
    `<rect x="${x - 4}" y="${y - 4}" width="8" height="8" fill="${theme.replay}"/>`;
  const computed = (x: number, y: number) =>
    `<path d="M${x} ${y - 4}l4 4l-4 4l-4 -4z" fill="${theme.surface}" stroke="${theme.replay}" stroke-width="1.5"/>`;
  const marks = markedPoints(plot.points).map(({ point, x, cachedY, replayY }) => {
    const replay = Number.isNaN(replayY)
      ? ''
      : point.replayMeasured
        ? measured(x, replayY)
        : computed(x, replayY);
    return replay + (Number.isNaN(cachedY) ? '' : cachedDot(x, cachedY));
  });
  const key = [
    [cachedDot(0, 0), `${work.cached}, ${work.measured}`],
    [measured(0, 0), `${work.replay}, ${work.measured}`],
    [computed(0, 0), `${work.replay}, ${work.computed}`],
  ].map(
    ([mark, name], i) =>
      `<g transform="translate(${margin.left + i * 240} ${height + 14})">${mark}${text(10, 4, name!, named)}</g>`,
  );
  const body =
    `<g transform="translate(0 ${PADDING + TITLE})">${grid.join('')}${ticks.join('')}` +
    `<path d="M${margin.left} ${bottom}H${right}" stroke="${theme.lineStrong}"/>` +
    text(right, height - 4, `${work.length} →`, { ...named, anchor: 'end' }) +
    `<path d="${areaPath(plot.points)}" fill="${theme.replay}" fill-opacity="0.1"/>` +
    `<path d="${linePath(plot.points, ({ replayY }) => replayY)}" fill="none" stroke="${theme.replay}" stroke-width="1.5" stroke-dasharray="6 4"/>` +
    `<path d="${linePath(plot.points, ({ cachedY }) => cachedY)}" fill="none" stroke="${theme.cached}" stroke-width="2"/>` +
    `${marks.join('')}${key.join('')}</g>`;
  return standalone(width, height + PADDING + TITLE + 32, work.label(metric), theme, body);
}

export function svgBlob(svg: string): Blob {
  return new Blob([svg], { type: 'image/svg+xml' });
}

/** The SVG as pixels, `scale` device pixels for each of its own. */
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
