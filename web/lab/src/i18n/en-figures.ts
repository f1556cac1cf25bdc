// Every text that a figure shows or announces, in English. Layers and heads are counted from 0.
import type { MapSource, Place } from '../figures/types.js';
import type { WorkMetric } from '../figures/work-series.js';
import { plural } from './plural.js';

const headName = (head: number | 'mean') => (head === 'mean' ? 'mean over heads' : `head ${head}`);
const pair = (query: Place, key: Place) =>
  `${query.position} ${query.token} → ${key.position} ${key.token}`;

export const figures = {
  /** For `Intl.NumberFormat`. */
  locale: 'en',
  head: (head: number | 'mean') => (head === 'mean' ? 'Mean' : `Head ${head}`),
  layer: (layer: number) => `Layer ${layer}`,
  layerHead: (layer: number, head: number | 'mean') => `Layer ${layer}, ${headName(head)}`,

  map: {
    label: (layer: number, head: number | 'mean') =>
      `Attention weights, layer ${layer}, ${headName(head)}`,
    instructions:
      'Arrow keys move the selected cell. Home and End go to the first and last key of the row. ' +
      'Page Up and Page Down move ten rows. Escape releases the cell.',
    queries: 'query: the token that looks back',
    keys: 'key: the token it looks at',
    cell: (query: Place, key: Place, weight: string) => `${pair(query, key)}: ${weight}`,
    maskedFuture: (query: Place, key: Place) =>
      `${pair(query, key)}: no weight, this key comes after the query`,
    maskedWindow: (query: Place, key: Place, window: number) =>
      `${pair(query, key)}: no weight, outside the window of ${window}`,
    unknown: (query: Place, key: Place) => `${pair(query, key)}: not captured`,
    hiddenSink: (query: Place, key: Place, weight: string) =>
      `${pair(query, key)}: ${weight} (column hidden)`,
    pinned: 'pinned (press Esc or click again to release)',
    released: 'Released',
    hint: 'Hover over a cell to read its weight. Click to pin it.',
    pooled: (block: number) => `Each pixel is the largest of ${block} × ${block} weights.`,
    source: ({ state, replayedRows }: MapSource, rows: number) => {
      if (state === 'dropped') return 'Older rows of this layer were dropped to save memory.';
      if (state === 'never')
        return 'This prompt was too long to capture every row while it was computed.';
      if (replayedRows === 0)
        return rows === 1
          ? 'The one row was captured during the run.'
          : `All ${plural(rows, 'row', 'rows')} were captured during the run.`;
      return `${replayedRows.toLocaleString('en')} of ${plural(rows, 'row', 'rows')} recomputed by a replay, the others captured during the run.`;
    },
    recompute: 'Recompute this layer',
    recomputing: 'Recomputing…',
    empty: 'No rows yet. Prefill a prompt first.',
  },

  legend: {
    weight: 'weight',
    masked: 'no weight (future)',
    notCaptured: 'not captured',
    sinkHidden: 'position 0 hidden',
  },

  controls: {
    palette: 'Colours',
    palettes: { cividis: 'cividis', inferno: 'inferno', greys: 'greys' },
    scale: 'Scale',
    scales: { linear: 'linear', sqrt: 'square root', log: 'logarithmic' },
    hideSink: 'Hide sink',
    hideSinkHelp:
      'Hides column 0, where many heads park unused attention (the “attention sink”), and rescales the colours.',
  },

  thumbnails: {
    label: 'All heads: one row per layer, one column per head',
    instructions: 'Arrow keys move between heads. Home and End go to the ends of a layer.',
    layerColumn: 'layer',
    meanColumn: 'mean',
    caption: (block: number, rows: number) =>
      block === 1
        ? `${plural(rows, 'row', 'rows')}, one pixel per weight.`
        : `${plural(rows, 'row', 'rows')}. Each pixel is the largest of ${block} × ${block} weights.`,
    partial: (layers: number, all: number) =>
      `In ${layers === all ? 'all' : `${layers} of ${all}`} layers some rows were not captured.`,
  },

  weights: {
    label: (layer: number, head: number | 'mean') =>
      `Weights on the text, layer ${layer}, ${headName(head)}`,
    outgoing: 'what the selected token attends to (bar below)',
    incoming: 'what attends to the selected token (bar above)',
    token: (
      { position, token }: Place,
      outgoing: string | undefined,
      incoming: string | undefined,
    ) =>
      [
        `${position} ${token}`,
        outgoing === undefined ? '' : `attended to with ${outgoing}`,
        incoming === undefined ? '' : `attends to it with ${incoming}`,
      ]
        .filter(Boolean)
        .join(', '),
    selected: ({ position, token }: Place) => `Selected: ${position} ${token}`,
    incomingUnknown:
      'To show what attends to this token, every row of the layer is needed. Recompute the layer.',
    hint: 'Click a token to see what it attends to and what attends to it.',
  },

  table: {
    label: (layer: number) => `Scores of the heads of layer ${layer}`,
    head: 'Head',
    mean: 'Mean over heads',
    scores: {
      entropy: 'Entropy (bits)',
      previous: 'Previous token',
      first: 'First token',
      induction: 'Induction',
    },
    definitions: {
      entropy:
        'How spread out the weights of a row are: 0 bits if one key gets everything, log2 n if n keys share equally.',
      previous: 'The weight that a token gives to the token just before it.',
      first:
        'The weight that a token gives to position 0, often an attention sink (Xiao et al., 2023).',
      induction:
        'The weight that a token gives to the tokens that followed earlier copies of it ' +
        '(prefix matching, Olsson et al., 2022). Only tokens that occurred before count.',
    },
    sortBy: (column: string) => `Sort by ${column}`,
    none: 'not defined here',
    allRows: (rows: number) =>
      `Averaged over ${plural(rows, 'row', 'rows')}. Row 0 does not count: it can attend only to itself.`,
    someRows: (rows: number, length: number) =>
      `Averaged over the ${plural(rows, 'row', 'rows')} captured of ${length.toLocaleString('en')}. Row 0 does not count: it can attend only to itself.`,
    oneRow: ({ position, token }: Place) => `For the row of position ${position} ${token} alone.`,
    noRows: 'There is nothing to average yet: row 0 can attend only to itself.',
  },

  work: {
    label: (metric: WorkMetric) =>
      ({
        causalScores: 'Query–key products, with the cache and by replay',
        scores: 'Attention scores in the full grid, with the cache and by replay',
        multiplyAdds: 'Multiply-adds, with the cache and by replay',
        milliseconds: 'Time, with the cache and by replay',
      })[metric],
    metric: 'Count',
    metrics: {
      causalScores: 'query–key products',
      scores: 'scores (full grid)',
      multiplyAdds: 'multiply-adds',
      milliseconds: 'milliseconds',
    },
    axes: 'Axes',
    linear: 'linear',
    logLog: 'log–log',
    length: 'tokens in the prefix',
    cached: 'with the cache',
    replay: 'by replay',
    measured: 'measured',
    computed: 'computed',
    avoided: 'avoided',
    difference: 'replay minus cache',
    instructions: 'Left and right arrow keys move between prefixes.',
    point: (length: number, cached: string, replay: string, measured: boolean) =>
      `${plural(length, 'token', 'tokens')}: ${cached} with the cache, ${replay} by replay ` +
      `(${measured ? 'measured' : 'computed'})`,
    pointAvoided: (amount: string) => `${amount} avoided`,
    pointMore: (amount: string) => `the cache took ${amount} more`,
    pointSame: 'no difference',
    sums: 'Totals over all steps. Squares: the replay was run and measured. Diamonds: it was computed.',
    gridNote:
      'The full grid counts masked scores too. A replay fills a t × t grid, but each cached row holds only its t scores, so the two differ even for a prefill, where the cache saves nothing.',
    timeNote:
      'Times are single measurements on this machine. Short steps vary a lot, and the first ones also warm up the engine.',
    noReplayTime: 'No replay has been run yet, so there is no time to compare with.',
    table: 'Totals up to each prefix',
    phase: { prefill: 'prefill', decode: 'decode', extend: 'extend' },
    call: 'Step',
    replayKind: 'Replay is',
  },
};

export type FigureMessages = typeof figures;
