// Every text that a figure shows or says. The page's message files hold one object of this type for
// each language; messages.en.ts and messages.ru.ts are ready to be used as they are.
import type { MapSource, Palette, ScaleKind } from './types.js';
import type { HeadScore } from './head-stats.js';
import type { WorkMetric } from './work-series.js';

/** A place in the text: its position and its token as it is shown. */
export interface Place {
  readonly position: number;
  readonly token: string;
}

export interface FigureMessages {
  /** For `Intl.NumberFormat`. */
  readonly locale: string;

  /** "Head 3", "Mean over heads", "Layer 2, head 3". Layers and heads are counted from 0. */
  readonly head: (head: number | 'mean') => string;
  readonly layer: (layer: number) => string;
  readonly layerHead: (layer: number, head: number | 'mean') => string;

  readonly map: {
    /** Name of the figure; also the title of an export. */
    readonly label: (layer: number, head: number | 'mean') => string;
    /** How to use it, read once on focus. */
    readonly instructions: string;
    readonly queries: string;
    readonly keys: string;
    /** Exact value of a cell; `weight` is already formatted. */
    readonly cell: (query: Place, key: Place, weight: string) => string;
    readonly maskedFuture: (query: Place, key: Place) => string;
    readonly maskedWindow: (query: Place, key: Place, window: number) => string;
    readonly unknown: (query: Place, key: Place) => string;
    readonly hiddenSink: (query: Place, key: Place, weight: string) => string;
    readonly pinned: string;
    readonly released: string;
    /** Shown where a value will appear. */
    readonly hint: string;
    /** "1 pixel = the largest of n x n weights". */
    readonly pooled: (block: number) => string;
    readonly source: (source: MapSource, rows: number) => string;
    readonly recompute: string;
    readonly recomputing: string;
    readonly empty: string;
  };

  readonly legend: {
    readonly weight: string;
    readonly masked: string;
    readonly sinkHidden: string;
  };

  readonly controls: {
    readonly palette: string;
    readonly palettes: Readonly<Record<Palette, string>>;
    readonly scale: string;
    readonly scales: Readonly<Record<ScaleKind, string>>;
    readonly hideSink: string;
    /** What the switch hides and why. */
    readonly hideSinkHelp: string;
  };

  readonly thumbnails: {
    readonly label: string;
    readonly instructions: string;
    /** Over the numbers of the layers. */
    readonly layerColumn: string;
    readonly meanColumn: string;
    /** How they are pooled, with how many rows are in. */
    readonly caption: (block: number, rows: number) => string;
    readonly partial: (layer: number, rows: number, length: number) => string;
  };

  readonly weights: {
    readonly label: (layer: number, head: number | 'mean') => string;
    readonly outgoing: string;
    readonly incoming: string;
    readonly token: (
      place: Place,
      outgoing: string | undefined,
      incoming: string | undefined,
    ) => string;
    readonly selected: (place: Place) => string;
    readonly incomingUnknown: string;
    readonly hint: string;
  };

  readonly table: {
    readonly label: (layer: number) => string;
    readonly head: string;
    readonly mean: string;
    readonly scores: Readonly<Record<HeadScore, string>>;
    /** Each definition in one sentence. */
    readonly definitions: Readonly<Record<HeadScore, string>>;
    readonly sortBy: (column: string) => string;
    readonly none: string;
    readonly allRows: (rows: number) => string;
    readonly oneRow: (place: Place) => string;
  };

  readonly work: {
    readonly label: (metric: WorkMetric) => string;
    readonly metric: string;
    readonly metrics: Readonly<Record<WorkMetric, string>>;
    readonly axes: string;
    readonly linear: string;
    readonly logLog: string;
    readonly length: string;
    readonly cached: string;
    readonly replay: string;
    readonly measured: string;
    readonly computed: string;
    readonly avoided: string;
    readonly instructions: string;
    /** One point read out; values are already formatted. */
    readonly point: (
      length: number,
      cached: string,
      replay: string,
      measured: boolean,
      avoided: string,
    ) => string;
    /** What a sum is made of. */
    readonly sums: string;
    readonly noReplayTime: string;
    readonly table: string;
    readonly phase: Readonly<Record<'prefill' | 'decode' | 'extend', string>>;
    readonly call: string;
    readonly replayKind: string;
  };
}
