// One head's attention as a map: rows are queries, columns keys. The canvas holds colours alone;
// axes, outlines and texts are elements around and over it, so that pointing at a cell draws
// redraws nothing.
//
// To assistive technology it is a grid of which one cell exists at a time: the one that is looked
// at.
import { useId, useMemo, useRef, useState } from 'preact/hooks';
import { exactDecimal } from '../format.js';
import { useDrawing, usePixelRatio, useWidth } from './hooks.js';
import { MapLegend } from './legend.js';
import { axesFrame, MapAxes } from './map-axes.js';
import { MapImage } from './map-image.js';
import { moveCell } from './map-keys.js';
import { cellAt, cellBox, labelWidth, layoutMap, type MapLayout } from './map-layout.js';
import type { FigureMessages } from '../i18n/en-figures.js';
import {
  isMasked,
  type Announce,
  type AttentionMatrix,
  type Cell,
  type HeadRef,
  type MapSource,
  type MapStyle,
} from './types.js';

export interface AttentionMapProps {
  readonly matrix: AttentionMatrix;
  readonly head: HeadRef;
  readonly source: MapSource;
  readonly tokens: readonly string[];
  readonly mapStyle: MapStyle;
  readonly messages: FigureMessages;
  readonly pinned: Cell | null;
  /** Position that the page has selected; its row is outlined. */
  readonly selected?: number | undefined;
  readonly onPin: (cell: Cell | null) => void;
  readonly onPreview?: (cell: Cell | null) => void;
  readonly onAnnounce?: Announce;
  /** Offered where rows are missing. */
  readonly onRecompute?: () => void;
  readonly recomputing?: boolean;
}

/** The largest side of a map, in CSS pixels. */
const MAX_SIDE = 760;

/** What a cell holds, in words, with the exact number. */
export function describeCell(
  { query, key }: Cell,
  {
    matrix,
    tokens,
    mapStyle,
    messages,
  }: Pick<AttentionMapProps, 'matrix' | 'tokens' | 'mapStyle' | 'messages'>,
): string {
  const from = { position: query, token: tokens[query] ?? '' };
  const to = { position: key, token: tokens[key] ?? '' };
  if (key > query) return messages.map.maskedFuture(from, to);
  if (isMasked(query, key, matrix.slidingWindow))
    return messages.map.maskedWindow(from, to, matrix.slidingWindow);
  const weight = matrix.row(query)?.[key];
  if (weight === undefined) return messages.map.unknown(from, to);
  if (mapStyle.hideSink && key === 0)
    return messages.map.hiddenSink(from, to, exactDecimal(weight));
  return messages.map.cell(from, to, exactDecimal(weight));
}

const isSame = (a: Cell | null, b: Cell | null) => a?.query === b?.query && a?.key === b?.key;

/** Canvas and image of one map, which live as long as its component. */
class Surface {
  readonly image = new MapImage();
  readonly #source = document.createElement('canvas');
  #drawn = '';

  draw(
    canvas: HTMLCanvasElement,
    layout: MapLayout,
    matrix: AttentionMatrix,
    style: MapStyle,
  ): void {
    const { image } = this;
    const pixelsBefore = image.pixels;
    const { from, to } = image.update(matrix, style, layout.block);
    const source = this.#source.getContext('2d')!;
    if (image.pixels !== pixelsBefore) this.#source.width = this.#source.height = image.capacity;
    if (to > from && image.capacity > 0) {
      const bytes = new Uint8ClampedArray(image.pixels.buffer);
      const data = new ImageData(bytes, image.capacity, image.capacity);
      source.putImageData(data, 0, 0, 0, from, image.capacity, to - from);
    }
    this.#blit(canvas, layout, from);
  }

  // Copies the image; only from row `from` on if the rows above are drawn already.
  #blit(canvas: HTMLCanvasElement, { cells, deviceSide }: MapLayout, from: number): void {
    const drawn = `${cells} ${deviceSide}`;
    if (canvas.width !== deviceSide) canvas.width = canvas.height = deviceSide;
    const context = canvas.getContext('2d')!;
    context.imageSmoothingEnabled = false;
    const top = drawn === this.#drawn ? Math.floor((from * deviceSide) / Math.max(1, cells)) : 0;
    this.#drawn = drawn;
    if (top >= deviceSide) return;
    context.save();
    context.beginPath();
    context.rect(0, top, deviceSide, deviceSide - top);
    context.clip();
    context.clearRect(0, top, deviceSide, deviceSide - top);
    context.drawImage(this.#source, 0, 0, cells, cells, 0, 0, deviceSide, deviceSide);
    context.restore();
  }
}

export function AttentionMap(props: AttentionMapProps) {
  const { matrix, head, source, tokens, mapStyle, messages, pinned, selected } = props;
  const { onPin, onPreview, onAnnounce } = props;
  const id = useId();
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const pixelRatio = usePixelRatio();
  const [hovered, setHovered] = useState<Cell | null>(null);
  const [maximum, setMaximum] = useState(1);

  const { length } = matrix;
  const gutter = useMemo(() => labelWidth(tokens, length), [tokens, length]);
  const available = Math.max(48, Math.min(MAX_SIDE, width - axesFrame(gutter, 0).left));
  const layout = useMemo(
    () => layoutMap(length, available, pixelRatio),
    [length, available, pixelRatio],
  );
  const axes = axesFrame(gutter, layout.side);
  const surface = useMemo(() => new Surface(), []);
  useDrawing(() => {
    if (!canvas.current || width === 0) return;
    surface.draw(canvas.current, layout, matrix, mapStyle);
    setMaximum(surface.image.maximum);
  }, [layout, matrix, mapStyle, width]);

  const within = (cell: Cell | null) => (cell && cell.query < length ? cell : null);
  const active = within(hovered) ?? within(pinned);
  const describe = (cell: Cell) => describeCell(cell, props);

  const hover = (cell: Cell | null) => {
    if (isSame(cell, hovered)) return;
    setHovered(cell);
    onPreview?.(cell);
    if (cell) onAnnounce?.(describe(cell));
  };
  const pin = (cell: Cell | null) => {
    if (!cell && !pinned) return;
    onPin(cell);
    onAnnounce?.(cell ? describe(cell) : messages.map.released);
  };
  const pointed = (event: PointerEvent | MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return cellAt(layout, matrix, event.clientX - box.left, event.clientY - box.top);
  };
  // A second click releases: a touch screen may have no Escape key.
  const onClick = (cell: Cell | null) => pin(isSame(cell, pinned) ? null : cell);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      if (!pinned && !hovered) return;
      setHovered(null);
      onPreview?.(null);
      pin(null);
    } else {
      const cell = moveCell(active, event, length);
      if (!cell) return;
      setHovered(null);
      pin(cell);
    }
    event.preventDefault();
  };

  const missing = source.state !== 'kept';
  return (
    <figure class="kv-figure kv-map">
      <div class="kv-map-frame">
        <div ref={frame} />
        {length === 0 ? (
          <p class="kv-empty">{messages.map.empty}</p>
        ) : (
          <div class="kv-map-body" style={{ width: `${axes.width}px`, height: `${axes.height}px` }}>
            <svg class="kv-map-axes" width={axes.width} height={axes.height} aria-hidden="true">
              <MapAxes
                layout={layout}
                tokens={tokens}
                gutter={gutter}
                matrix={matrix}
                active={active}
                selected={selected}
                messages={messages}
              />
            </svg>
            <div
              class="kv-map-plot"
              role="grid"
              tabIndex={0}
              aria-label={messages.map.label(head.layer, head.head)}
              aria-describedby={`${id}-help`}
              aria-rowcount={length}
              aria-colcount={length}
              aria-readonly="true"
              aria-activedescendant={active ? `${id}-cell` : undefined}
              style={{
                left: `${axes.left}px`,
                top: `${axes.top}px`,
                width: `${layout.side}px`,
                height: `${layout.side}px`,
              }}
              onKeyDown={onKeyDown}
              onPointerMove={(event) => hover(pointed(event))}
              onPointerLeave={() => hover(null)}
              onClick={(event) => onClick(pointed(event))}
            >
              <canvas
                ref={canvas}
                aria-hidden="true"
                style={{ width: `${layout.side}px`, height: `${layout.side}px` }}
              />
              {selected !== undefined && selected < length && (
                <RowOutline layout={layout} query={selected} />
              )}
              {hovered && <CellOutline layout={layout} cell={hovered} kind="hovered" />}
              {within(pinned) && <CellOutline layout={layout} cell={pinned!} kind="pinned" />}
              <div role="row" aria-rowindex={(active?.query ?? 0) + 1} class="hidden-visually">
                <div
                  role="gridcell"
                  id={`${id}-cell`}
                  aria-colindex={(active?.key ?? 0) + 1}
                  aria-selected={active !== null && active === within(pinned)}
                >
                  {active ? describe(active) : messages.map.hint}
                </div>
              </div>
            </div>
          </div>
        )}
      </div>
      <figcaption>
        <p class="kv-readout" data-pinned={active !== null && active === within(pinned)}>
          {active ? describe(active) : messages.map.hint}
          {active && active === within(pinned) && (
            <span class="kv-pinned"> · {messages.map.pinned}</span>
          )}
        </p>
        <MapLegend mapStyle={mapStyle} maximum={maximum} messages={messages} partial={missing} />
        {length > 0 && (
          <p class="kv-note">
            {layout.block > 1 && `${messages.map.pooled(layout.block)} `}
            {messages.map.source(source, length)}{' '}
            {missing && props.onRecompute && (
              <button
                type="button"
                class="button plain"
                aria-disabled={props.recomputing}
                onClick={() => props.recomputing || props.onRecompute?.()}
              >
                {props.recomputing ? messages.map.recomputing : messages.map.recompute}
              </button>
            )}
          </p>
        )}
        <p id={`${id}-help`} class="hidden-visually">
          {messages.map.instructions}
        </p>
      </figcaption>
    </figure>
  );
}

/** A frame around the row of a query, up to its own key. */
function RowOutline({ layout, query }: { layout: MapLayout; query: number }) {
  const { x, y, side } = cellBox(layout, { query, key: query });
  const style = { top: `${y}px`, width: `${x + side}px`, height: `${side}px` };
  return <div class="kv-row" style={style} aria-hidden="true" />;
}

/** A ring around a cell, never smaller than can be seen. */
function CellOutline({
  layout,
  cell,
  kind,
}: {
  layout: MapLayout;
  cell: Cell;
  kind: 'hovered' | 'pinned';
}) {
  const { x, y, side } = cellBox(layout, cell);
  const size = Math.max(side, 7);
  const style = {
    left: `${x + (side - size) / 2}px`,
    top: `${y + (side - size) / 2}px`,
    width: `${size}px`,
    height: `${size}px`,
  };
  return <div class={`kv-cell kv-cell-${kind}`} style={style} aria-hidden="true" />;
}
