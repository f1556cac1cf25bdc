import type { FigureMessages } from './messages.js';

const headName = (head: number | 'mean') => (head === 'mean' ? 'mean over heads' : `head ${head}`);
const plural = (n: number, one: string, many: string) =>
  `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

export const en: FigureMessages = {
  locale: 'en',
  head: (head) => (head === 'mean' ? 'Mean' : `Head ${head}`),
  layer: (layer) => `Layer ${layer}`,
  layerHead: (layer, head) => `Layer ${layer}, ${headName(head)}`,

  map: {
    label: (layer, head) => `Attention weights, layer ${layer}, ${headName(head)}`,
    instructions:
      'Arrow keys move the selected cell, Home and End go to the first and last key of the row, ' +
      'Page Up and Page Down move ten rows, Escape lets go.',
    queries: 'query: the position that looks',
    keys: 'key: the position looked at',
    cell: (query, key, weight) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: ${weight}`,
    maskedFuture: (query, key) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: no weight, the key lies in the future`,
    maskedWindow: (query, key, window) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: no weight, outside the window of ${window}`,
    unknown: (query, key) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: not at hand`,
    hiddenSink: (query, key, weight) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: ${weight} (column hidden)`,
    pinned: 'pinned; Esc lets go',
    released: 'Let go',
    hint: 'Point at a cell to read its weight, click to pin it.',
    pooled: (block) => `Each pixel is the largest of ${block} × ${block} weights.`,
    source: ({ state, replayedRows }, rows) => {
      if (state === 'dropped') return 'Older rows of this layer gave way to the memory budget.';
      if (state === 'never')
        return 'Some rows of this layer were not captured when they were computed.';
      if (replayedRows === 0)
        return `All ${plural(rows, 'row', 'rows')} as the calls computed them.`;
      return `${plural(replayedRows, 'row', 'rows')} of ${rows} recomputed by replay, the others as the calls computed them.`;
    },
    recompute: 'Recompute by replay',
    recomputing: 'Recomputing…',
    empty: 'No row yet: prefill a prompt.',
  },

  legend: {
    weight: 'weight',
    masked: 'no weight (future)',
    sinkHidden: 'position 0 hidden',
  },

  controls: {
    palette: 'Colours',
    palettes: { cividis: 'cividis', inferno: 'inferno', greys: 'greys' },
    scale: 'Scale',
    scales: { linear: 'linear', sqrt: 'square root', log: 'logarithmic' },
    hideSink: 'Hide sink',
    hideSinkHelp:
      'Leaves position 0 (column 0), where heads put the weight that they need nowhere else, out of the drawing ' +
      'and fits the colours to the rest.',
  },

  thumbnails: {
    label: 'All heads: rows are layers, columns are heads',
    instructions: 'Arrow keys move between heads, Home and End go to the ends of a layer.',
    layerColumn: 'layer',
    meanColumn: 'mean',
    caption: (block, rows) =>
      block === 1
        ? `${plural(rows, 'row', 'rows')}, one weight a pixel.`
        : `${plural(rows, 'row', 'rows')}; a pixel is the largest of ${block} × ${block} weights.`,
    partial: (layer, rows, length) => `Layer ${layer} shows ${rows} of ${length} rows.`,
  },

  weights: {
    label: (layer, head) => `Weights on the text, layer ${layer}, ${headName(head)}`,
    outgoing: 'looks at (bar below)',
    incoming: 'is looked at by (bar above)',
    token: ({ position, token }, outgoing, incoming) =>
      [
        `${position} ${token}`,
        outgoing === undefined ? '' : `looked at with ${outgoing}`,
        incoming === undefined ? '' : `looks back with ${incoming}`,
      ]
        .filter(Boolean)
        .join(', '),
    selected: ({ position, token }) => `Selected: ${position} ${token}`,
    incomingUnknown: 'Incoming weights need all rows of this layer: recompute them by replay.',
    hint: 'Choose a token to see what it looks at and what looks at it.',
  },

  table: {
    label: (layer) => `Scores of the heads of layer ${layer}`,
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
        'Entropy of the weights of a row: 0 bits when one key takes all, log2 n when n keys share equally.',
      previous: 'Weight that a position gives to the one directly before it.',
      first: 'Weight that a position gives to position 0, the attention sink (Xiao et al., 2023).',
      induction:
        'Weight that a position gives to the tokens that followed earlier occurrences of its own token ' +
        '(prefix matching, Olsson et al., 2022); only over positions whose token occurred before.',
    },
    sortBy: (column) => `Sort by ${column}`,
    none: 'not defined here',
    allRows: (rows) =>
      `Means over the rows seen (${plural(rows, 'position', 'positions')}); row 0, which sees itself alone, is left out.`,
    oneRow: ({ position, token }) => `Of the row of position ${position} ${token} alone.`,
  },

  work: {
    label: (metric) =>
      ({
        scores: 'Attention scores, cached against replay',
        causalScores: 'Query-key products, cached against replay',
        multiplyAdds: 'Multiply-adds, cached against replay',
        milliseconds: 'Time, cached against replay',
      })[metric],
    metric: 'Count',
    metrics: {
      scores: 'attention scores',
      causalScores: 'query–key products',
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
    instructions: 'Left and right arrow keys move between prefixes.',
    point: (length, cached, replay, measured, avoided) =>
      `${plural(length, 'token', 'tokens')}: ${cached} with the cache, ${replay} by replay ` +
      `(${measured ? 'measured' : 'computed'}), ${avoided} avoided`,
    sums: 'Each sum runs over all calls so far. A square marks a prefix whose replay was run; what it adds is measured, what the others add is computed.',
    noReplayTime: 'No replay has been run yet, so there is no time to compare with.',
    table: 'Sums up to each prefix',
    phase: { prefill: 'prefill', decode: 'decode', extend: 'extend' },
    call: 'Call',
    replayKind: 'Replay is',
  },
};
