// What the figures share: which head is looked at, which cell, how a weight becomes a colour, and
// the matrix of weights as every figure reads it.

/** The typed arrays that weights come in: the compute type of the session. */
export type Weights = Float32Array | Float64Array;

/** One query head of one layer, or the mean over the heads of that layer. */
export interface HeadRef {
  readonly layer: number;
  readonly head: number | 'mean';
}

/** A position in the text, with its token as it is shown. */
export interface Place {
  readonly position: number;
  readonly token: string;
}

/** One cell of a map: the weight that position `query` gives to position `key`. */
export interface Cell {
  readonly query: number;
  readonly key: number;
}

/** How a weight in 0..1 becomes a place on the colour ramp. */
export type ScaleKind = 'linear' | 'sqrt' | 'log';

/** Colour ramps, each of 256 entries. */
export type Palette = 'cividis' | 'inferno' | 'greys';

/** How all maps and thumbnails are drawn. */
export interface MapStyle {
  readonly palette: Palette;
  readonly scale: ScaleKind;
  /** Leaves column 0 out of the drawing and out of the colour range. */
  readonly hideSink: boolean;
}

/**
 * The attention weights of one head. Rows may be missing: `row` is then undefined. A row has the
 * weights of keys `0..query`.
 */
export interface AttentionMatrix {
  /** Tells the maps of different heads apart. */
  readonly id: string;
  /** Moves when rows that were there before changed; rows that were only appended leave it. */
  readonly epoch: number;
  /** Positions. */
  readonly length: number;
  /** Positions a row sees, itself included; 0: all. */
  readonly slidingWindow: number;
  /** Whether the row of a query was captured and is still kept. */
  has(query: number): boolean;
  row(query: number): Weights | undefined;
}

/** Where the rows of a head's map come from; a figure says it next to the map. */
export interface MapSource {
  /**
   * `kept`: every row is there. `dropped`: older rows were dropped to save memory. `never`: the
   * calls that made the rows did not capture them.
   */
  readonly state: 'kept' | 'dropped' | 'never';
  /**
   * How many of the kept rows came from a replay and not from the call
   * itself.
   */
  readonly replayedRows: number;
}

/**
 * Whether the key of a cell lies after its query, or outside the sliding window: such a cell has no
 * weight.
 */
export function isMasked(query: number, key: number, slidingWindow: number): boolean {
  return key > query || (slidingWindow > 0 && query - key >= slidingWindow);
}

/** Says what happened, for a live region. */
export type Announce = (text: string) => void;
