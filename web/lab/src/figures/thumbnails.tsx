// Every head of every layer at a glance, and the choice of one. One canvas has all pixels; over it
// lies a grid of empty cells, which take clicks, focus and names.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { AttentionStore } from './attention-store.js';
import { useDrawing, usePixelRatio, useWidth } from './hooks.js';
import type { FigureMessages } from '../i18n/en-figures.js';
import { SIDE } from './pooled-map.js';
import { ThumbnailFrame } from './thumbnail-frame.js';
import { ThumbnailImage } from './thumbnail-image.js';
import { layoutThumbnails, type ThumbnailLayout } from './thumbnail-layout.js';
import type { Announce, HeadRef, MapStyle } from './types.js';

export interface ThumbnailsProps {
  readonly store: AttentionStore;
  readonly mapStyle: MapStyle;
  readonly selected: HeadRef;
  readonly onSelect: (head: HeadRef) => void;
  readonly messages: FigureMessages;
  readonly onAnnounce?: Announce;
}

/** Where an arrow key leads. */
function move(
  { layer, head }: HeadRef,
  key: string,
  nLayers: number,
  nHeads: number,
): HeadRef | null {
  const column = head === 'mean' ? nHeads : head;
  const to = (toLayer: number, toColumn: number): HeadRef => {
    const inside = Math.max(0, Math.min(nHeads, toColumn));
    return {
      layer: Math.max(0, Math.min(nLayers - 1, toLayer)),
      head: inside === nHeads ? 'mean' : inside,
    };
  };
  const moves: Readonly<Record<string, HeadRef>> = {
    ArrowUp: to(layer - 1, column),
    ArrowDown: to(layer + 1, column),
    ArrowLeft: to(layer, column - 1),
    ArrowRight: to(layer, column + 1),
    Home: to(layer, 0),
    End: to(layer, nHeads),
  };
  return moves[key] ?? null;
}

/**
 * The pixels of all thumbnails, copied tile by tile to where they are seen: all of them, or the
 * lines that changed.
 */
class Surface {
  readonly image: ThumbnailImage;
  readonly #source = document.createElement('canvas');
  #drawn: readonly unknown[] = [];

  constructor(private readonly store: AttentionStore) {
    this.image = new ThumbnailImage(store);
    this.#source.width = this.image.width;
    this.#source.height = this.image.height;
  }

  draw(
    canvas: HTMLCanvasElement,
    layout: ThumbnailLayout,
    pixelRatio: number,
    style: MapStyle,
  ): void {
    const { image, store } = this;
    const { from, to } = image.update(style);
    const blocks = Array.from({ length: store.nLayers }, (_, layer) => image.blocks(layer));
    const drawn = [canvas, layout, pixelRatio, ...blocks];
    const same =
      drawn.length === this.#drawn.length && drawn.every((value, i) => value === this.#drawn[i]);
    this.#drawn = drawn;
    this.#copy(from, to);
    if (same && from >= to) return;

    const device = (length: number) => Math.round(length * pixelRatio);
    const [width, height, side] = [
      device(layout.width),
      device(layout.height),
      device(layout.tile),
    ];
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const context = canvas.getContext('2d')!;
    context.imageSmoothingEnabled = false;
    if (!same) context.clearRect(0, 0, width, height);
    blocks.forEach((n, layer) => {
      const y = device(layout.y(layer));
      const top = same && n > 0 ? Math.floor((from * side) / n) : 0;
      context.save();
      context.beginPath();
      context.rect(0, y + top, width, side - top);
      context.clip();
      for (let column = 0; column < image.columns; ++column) {
        const x = device(layout.x(column));
        context.clearRect(x, y, side, side);
        if (n > 0)
          context.drawImage(this.#source, column * SIDE, layer * SIDE, n, n, x, y, side, side);
      }
      context.restore();
    });
  }

  // The lines `from` to before `to` of all slots, into the canvas that tiles are taken from.
  #copy(from: number, to: number): void {
    if (from >= to) return;
    const { image } = this;
    const data = new ImageData(
      new Uint8ClampedArray(image.pixels.buffer),
      image.width,
      image.height,
    );
    const context = this.#source.getContext('2d')!;
    for (let layer = 0; layer < this.store.nLayers; ++layer) {
      context.putImageData(data, 0, 0, 0, layer * SIDE + from, image.width, to - from);
    }
  }
}

export function Thumbnails(props: ThumbnailsProps) {
  const { store, mapStyle, selected, onSelect, messages, onAnnounce } = props;
  const { nLayers, nHeads } = store;
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const moved = useRef(false);
  const width = useWidth(frame);
  const pixelRatio = usePixelRatio();
  const layout = useMemo(() => layoutThumbnails(nLayers, nHeads, width), [nLayers, nHeads, width]);
  const surface = useMemo(() => new Surface(store), [store]);
  // Not subscribed to: the page renders this figure when it wants it to follow.
  const revision = store.revision.peek();
  useDrawing(() => {
    if (canvas.current && width > 0) surface.draw(canvas.current, layout, pixelRatio, mapStyle);
  }, [surface, layout, pixelRatio, mapStyle, revision]);

  // The keyboard's choice carries the focus along.
  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    grid.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
  }, [selected.layer, selected.head]);

  const select = (head: HeadRef) => {
    onSelect(head);
    onAnnounce?.(messages.layerHead(head.layer, head.head));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const head = move(selected, event.key, nLayers, nHeads);
    if (!head) return;
    event.preventDefault();
    moved.current = true;
    select(head);
  };

  const layers = Array.from({ length: nLayers }, (_, layer) => layer);
  const partial = store.partialLayers();
  const uncaptured = layers.map((layer) => (partial > 0 ? surface.image.uncaptured(layer) : ''));
  const marks = useMemo(
    () => (
      <svg width={layout.width} height={layout.height} aria-hidden="true">
        <ThumbnailFrame {...{ layout, nLayers, nHeads, uncaptured, messages }} />
      </svg>
    ),
    [layout, nLayers, nHeads, uncaptured.join(), messages],
  );
  // The very same element tree while nothing of it changed: appended rows then leave it alone.
  const { layer, head } = selected;
  const handlers = useRef({ select, onKeyDown });
  handlers.current = { select, onKeyDown };
  const cells = useMemo(
    () => (
      <div
        role="grid"
        ref={grid}
        aria-label={messages.thumbnails.label}
        onKeyDown={(event) => handlers.current.onKeyDown(event)}
      >
        <ThumbnailCells
          layout={layout}
          nLayers={nLayers}
          nHeads={nHeads}
          selected={{ layer, head }}
          onSelect={(chosen) => handlers.current.select(chosen)}
          messages={messages}
        />
      </div>
    ),
    [layout, nLayers, nHeads, layer, head, messages],
  );
  return (
    <figure class="kv-figure kv-thumbnails">
      <div class="kv-thumbnails-frame">
        <div ref={frame} />
        <div
          class="kv-thumbnails-body"
          style={{ width: `${layout.width}px`, height: `${layout.height}px` }}
        >
          {marks}
          <canvas
            ref={canvas}
            aria-hidden="true"
            style={{ width: `${layout.width}px`, height: `${layout.height}px` }}
          />
          {cells}
        </div>
      </div>
      <figcaption class="kv-note">
        {messages.thumbnails.caption(store.pooled({ layer: 0, head: 0 }).block, store.length)}
        {partial > 0 && ` ${messages.thumbnails.partial(partial, nLayers)}`}
        <span class="hidden-visually"> {messages.thumbnails.instructions}</span>
      </figcaption>
    </figure>
  );
}

interface ThumbnailCellsProps {
  readonly layout: ThumbnailLayout;
  readonly nLayers: number;
  readonly nHeads: number;
  readonly selected: HeadRef;
  readonly onSelect: (head: HeadRef) => void;
  readonly messages: FigureMessages;
}

/** The rows of the grid: names of columns and layers, and a cell over each thumbnail. */
function ThumbnailCells({
  layout,
  nLayers,
  nHeads,
  selected,
  onSelect,
  messages,
}: ThumbnailCellsProps) {
  const { tile, x, y } = layout;
  const columns = Array.from({ length: nHeads + 1 }, (_, column) => column);
  const box = (left: number, top: number, width: number, height: number) => ({
    left: `${left}px`,
    top: `${top}px`,
    width: `${width}px`,
    height: `${height}px`,
  });
  return (
    <>
      <div role="row">
        <span role="columnheader" class="hidden-visually">
          {messages.thumbnails.layerColumn}
        </span>
        {columns.map((column) => (
          <span key={column} role="columnheader" class="hidden-visually">
            {column === nHeads ? messages.thumbnails.meanColumn : column}
          </span>
        ))}
      </div>
      {Array.from({ length: nLayers }, (_, layer) => (
        <div role="row" key={layer}>
          <span role="rowheader" class="hidden-visually">
            {layer}
          </span>
          {columns.map((column) => {
            const head = column === nHeads ? 'mean' : column;
            const isSelected = layer === selected.layer && head === selected.head;
            return (
              <div
                key={column}
                role="gridcell"
                class="kv-thumbnail"
                tabIndex={isSelected ? 0 : -1}
                aria-selected={isSelected}
                aria-label={messages.layerHead(layer, head)}
                title={messages.layerHead(layer, head)}
                style={box(x(column), y(layer), tile, tile)}
                onClick={() => onSelect({ layer, head })}
              />
            );
          })}
        </div>
      ))}
    </>
  );
}
