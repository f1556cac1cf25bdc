// Every text of the page in English. A translation must have the type of this object.
import type { AnyKvLensError } from 'kvlens';
import { figures } from './en-figures.js';
import { plural } from './plural.js';

export const en = {
  figures,

  title: 'kvlens Lab',
  lab: 'Lab',
  skip: 'Skip to the demo',
  language: 'Language',
  languages: { en: 'English', ru: 'Русский' },
  theme: 'Theme',
  themes: { system: 'System', light: 'Light', dark: 'Dark' },
  help: 'Keyboard shortcuts',
  close: 'Close',
  yes: 'yes',
  no: 'no',

  intro: {
    heading: 'Watch a KV cache at work. Check every number.',
    lead: 'A real language model runs in this tab: no server, nothing pre-recorded.',
    computed: (tokens: number, milliseconds: string, model: string) =>
      `The first example: ${plural(tokens, 'token', 'tokens')}, computed by ${model} in this tab when the page opened, in ${milliseconds} ms.`,
    computing: 'Computing a first example…',
    steps: [
      {
        name: 'Prefill',
        text: 'runs the whole prompt through the model at once. In every layer, each token leaves a key and a value.',
        link: 'See the rows it added',
      },
      {
        name: 'Decode',
        text: 'adds one token at a time: the new token’s query is compared with every key already stored.',
        link: 'See that row in the map',
      },
      {
        name: 'The cache',
        text: 'is those keys and values. They are computed once and never change; without the cache, every step would reprocess the whole text.',
        link: 'See the work it avoided',
      },
    ],
  },

  model: {
    heading: 'Model',
    choose: 'Built-in model',
    names: {
      stories260k: 'stories260K, a tiny storyteller',
      toy: 'Toy: 2 layers, 2 heads, width 4 (random weights)',
    },
    own: 'Use your own model…',
    openFile: 'Open files…',
    dropHint: 'or drop them anywhere on the page: GGUF, safetensors with config.json, llama2.c',
    url: 'URL of a GGUF or safetensors file',
    load: 'Load',
    loading: (name: string) => `Loading ${name}`,
    stages: { open: 'reading headers', load: 'weights', ready: 'ready' },
    bytesOf: (bytes: string, total: string) => `${bytes} of ${total}`,
    cancel: 'Cancel',
    starting: 'Starting the engine…',
    restart: 'Restart the engine',
    engineEnded:
      'The engine stopped and its cache is lost. Restart it to recompute this run (built-in models only).',
    details: 'About this model',
    facts: {
      layers: 'Layers',
      heads: 'Query heads',
      kvHeads: 'KV heads',
      headDim: 'Head width',
      dModel: 'Model width',
      dFf: 'Feed-forward width',
      vocab: 'Vocabulary',
      context: 'Context',
      capacity: 'Cache capacity',
      window: 'Sliding window',
      parameters: 'Parameters',
      stored: 'Stored as',
      compute: 'Computes in',
      rope: 'RoPE',
      hash: 'Model hash',
      format: 'Format',
      engine: 'Engine',
    },
    none: 'none',
    precision: { f32: 'single precision', f64: 'double precision' },
    pairing: { interleaved: 'interleaved pairs', half_split: 'half-split pairs' },
    size: (n: string) => `${n} parameters`,
    threads: (n: number) => plural(n, 'thread', 'threads'),
    oneThread: 'Running on one thread. Why?',
    oneThreadWhy:
      'This page is not cross-origin isolated, so threads cannot share its memory. If the server sends the headers “Cross-Origin-Opener-Policy: same-origin” and “Cross-Origin-Embedder-Policy: require-corp”, kvlens uses all cores.',
    reloadForThreads: 'Reload with more threads',
    offlineReady: 'Ready to use offline.',
    downloadTooLarge: (bytes: string, limit: string) =>
      `This file is ${bytes}, but a page’s 32-bit memory holds at most ${limit}. Nothing was downloaded.`,
  },

  prompt: {
    heading: 'Prompt',
    text: 'Text',
    ids: 'Token ids',
    idsHint: (vocab: number) => `Numbers from 0 to ${vocab - 1}, separated by spaces.`,
    tokens: (n: number) => plural(n, 'token', 'tokens'),
    token: (text: string, id: number) => `${text}, id ${id}`,
    notAnId: (text: string, vocab: number) =>
      `“${text}” is not a token id. Ids are whole numbers from 0 to ${vocab - 1}.`,
    tooLong: (n: number, capacity: number) =>
      `The prompt has ${plural(n, 'token', 'tokens')}, but the cache has room for ${capacity}.`,
    empty: 'Type something first.',
    all: 'Prefill',
    again: 'Prefill again',
    one: 'Step one token',
    oneAgain: 'Start over, step by step',
    oneHint:
      'Feeds the prompt token by token: prefills the first and decodes each of the others. The logits come out bit for bit the same.',
    differs: (shared: number, all: number) =>
      shared === 0
        ? 'The cache holds other text. Decoding continues that text, not this prompt; prefill again to use this prompt.'
        : `The cache holds only the first ${shared} of these ${plural(all, 'token', 'tokens')}, then other text. Decoding continues that text; prefill again to use this prompt.`,
    left: (n: number) => `${plural(n, 'prompt token', 'prompt tokens')} to go`,
    working: (done: number, total: number) =>
      total === 0 ? 'Prefill…' : `Prefill: ${done} of ${total} rows`,
  },

  job: {
    stop: 'Stop',
    stopped: 'Stopped. Nothing changed.',
    stoppedEmpty: 'Stopped. The cache is empty.',
    stoppedPartly: 'Stopped. Finished parts are kept.',
  },

  run: {
    heading: 'Decode',
    greedy: 'Next token',
    greedyHint: 'Decode the most likely token',
    sampled: 'Sample',
    sampledHint: 'Draw a token with the settings below and decode it',
    play: 'Play',
    pause: 'Pause',
    speed: 'Speed',
    perSecond: (n: number) => `${n} tokens/s`,
    playSampled: 'Sample while playing',
    reset: 'Reset',
    resetHint: 'Empty the cache and set all counters to zero',
    cleared: (n: number) => `${plural(n, 'row', 'rows')} cleared.`,
    undo: 'Undo',
    undoing: (part: string) => `Recomputing the cleared rows… ${part}`,
    undoHint: 'Recomputes the rows that were cleared, and brings back everything shown about them',
    state: (length: number, capacity: number) =>
      `${length.toLocaleString('en')} of ${plural(capacity, 'row', 'rows')}`,
    why: {
      not_live: 'You are viewing a saved trace. No model is running.',
      empty: 'The cache is empty. Prefill a prompt first.',
      full: 'The cache is full. Select an earlier token and rewind to it, or reset.',
    },
    endings: {
      eos: 'Playing stopped: the model produced its end-of-text token.',
      full: 'Playing stopped: the cache is full.',
    },
    next: 'Predictions for the next token',
    nextHint: 'Click a token to append it.',
    nextRecorded: 'Recorded when the last row was computed. Click a token to append it.',
    nextUnknown: 'Predictions were not kept here. The next step recomputes them.',
    nextNone: 'The most likely tokens appear here after a prefill.',
    candidateId: (id: number) => `, id ${id}, `,
    sampling: 'Sampling and seed',
    temperature: 'Temperature',
    topK: 'Top-k (0 = all)',
    topP: 'Top-p',
    minP: 'Min-p',
    repetitionPenalty: 'Repetition penalty',
    seed: 'Seed',
    samplingHint:
      'At temperature 0 the most likely token is always chosen. The same seed draws the same tokens in every browser; changing the seed restarts the sequence.',
    draw: (unit: string, from: string, to: string, n: number) =>
      `Drew ${unit}: inside this token’s slice, ${from} to ${to} (${plural(n, 'candidate', 'candidates')}).`,
  },

  timeline: {
    heading: 'Timeline',
    about:
      'Each token adds one row to the cache of every layer. Each step only appends; existing rows never change.',
    phases: { prefill: 'prefill', decode: 'decode', extend: 'extend' },
    pending: 'waiting',
    chip: (text: string, id: number, position: number, phase: string) =>
      `${text}, position ${position}, id ${id}, ${phase}`,
    empty: 'The cache is empty.',
    selected: 'Position',
    newest: 'added by the last step',
    fork: 'Rewind to before this token',
    forkFirst: 'Clear all rows',
    forkHint: 'Drops this token and everything after it, so that you can continue differently.',
    unpin: 'Follow the newest token',
    bars: 'Rows of the cache, layer by layer',
    barsHelp: 'Left and right arrow keys change the position, up and down the KV head and layer.',
    layers: 'Layer',
    layer: (layer: number) => `Layer ${layer}`,
    kvHead: (head: number) => `KV ${head}`,
    serves: (heads: readonly number[]) =>
      `Q ${heads.length > 2 ? `${heads[0]}–${heads[heads.length - 1]}` : heads.join(', ')}`,
    shared: (n: number, kv: number) =>
      `${plural(n, 'query head shares', 'query heads share')} each KV head: ${plural(kv, 'row', 'rows')} per token per layer instead of ${n * kv} (grouped-query attention).`,
    own: 'Each query head has its own KV head.',
    barsHint: 'Hover for details. Click or use the arrow keys to select.',
    cell: (layer: number, head: number, position: number, text: string) =>
      `layer ${layer}, KV head ${head}, position ${position} ${text}`,
    rows: (n: number) => plural(n, 'row', 'rows'),
    unchanged: (n: number) =>
      n === 1 ? 'the 1 old row is unchanged' : `${n.toLocaleString('en')} old rows unchanged`,
    changed: 'old rows CHANGED',
    firstRows: 'no old rows yet',
    unchangedHelp: (n: number) =>
      `Checked, not assumed: the hashes of the first ${plural(n, 'row', 'rows')} of every layer were taken before and after the last step, and they are equal.`,
    hashes: 'Hashes per layer',
    before: 'before',
    after: 'after',
    legend: 'Marks',
    cellHeading: 'Selected cell',
    keyRow: 'Key, after RoPE',
    valueRow: 'Value',
    vector: (name: string, n: number) => `${name}: ${plural(n, 'number', 'numbers')}`,
    exact: 'Exact numbers',
    index: 'Index',
    key: 'Key',
    value: 'Value',
    cellUnavailable: 'Keys and values live in the model’s cache. A trace does not contain them.',
  },

  attention: {
    heading: 'Attention',
    about:
      'The real attention weights. Each row is a token looking back (query), each column a token it can look at (key); a row sums to 1. Each decode adds one row.',
    empty: 'Attention appears here after a prefill.',
    recomputing: (layer: number, part: string) => `Recomputing layer ${layer}… ${part}`,
    all: 'All heads',
    recomputeAll: 'Recompute all layers',
    recomputeAllHint:
      'Replays the whole text without the cache to get the attention rows that were not captured.',
    recomputingAll: (part: string) => `Recomputing all layers… ${part}`,
    onText: 'On the text',
    scores: 'What the heads do',
    scoresOf: 'Scores for',
    allRows: 'all rows',
    thisRow: 'the selected row',
    memory: (used: string, budget: string) => `Attention kept: ${used} of ${budget}`,
    save: 'Save',
  },

  evidence: {
    heading: 'What the last step did',
    headingEarlier: (n: number, all: number) => `Step ${n} of ${all}`,
    about: 'Counted inside the kernels, not computed from a formula.',
    earlier: 'Earlier step',
    later: 'Later step',
    isFirst: 'This is the first step.',
    isLast: 'This is the last step.',
    phase: 'Phase',
    how: 'Token',
    hows: {
      prompt: 'from the prompt',
      greedy: 'most likely',
      sampled: 'sampled',
      clicked: 'picked',
      again: 'computed again for its logits',
    },
    position: 'Position',
    length: 'Cache length',
    chosen: (token: string, how: string) => `${token} (${how})`,
    fromTo: (from: number, to: number) => `${from} → ${to}`,
    appended: 'Rows added per layer',
    appendedEach: (n: number, layers: number) => `${n} in each of ${layers}`,
    rowScores: 'Scores in the newest row',
    scores: 'Scores stored',
    causal: 'Query–key products',
    multiplyAdds: 'Multiply-adds',
    cacheSize: 'Cache size',
    bytes: (n: string) => `${n} B`,
    kvRead: (group: number) =>
      group === 1
        ? 'KV bytes read'
        : `KV bytes read (once per query head; ${group} heads share each byte)`,
    kvWritten: 'KV bytes written',
    time: 'Time',
    milliseconds: (ms: string) => `${ms} ms`,
    top: 'Predictions after this step',
    token: 'Token',
    id: 'Id',
    logit: 'Logit',
    probability: 'Probability',
    stages: 'Multiply-adds per stage',
    stage: {
      qkv: 'q, k, v projections',
      scores: 'scores',
      mix: 'weights × values',
      output: 'output projection',
      ffn: 'feed-forward',
      logits: 'logits',
    },
    empty: 'No steps yet.',
  },

  verify: {
    heading: 'Verify by replay',
    about: 'Recomputes the whole text without the cache and compares the logits bit for bit.',
    button: 'Verify now',
    working: (n: number, part: string) => `Replaying ${plural(n, 'token', 'tokens')}… ${part}`,
    equal: 'Equal, bit for bit',
    different: 'NOT equal',
    difference: 'Largest difference',
    bytes: 'Bytes equal',
    cached: 'With the cache',
    replay: 'Replay',
    dense: 'Scores (full grid)',
    causal: 'Scores (causal half)',
    multiplyAdds: 'Multiply-adds',
    time: 'Time, ms',
    lastCall: 'last step only',
    cacheKept: 'Cache untouched: all hashes match.',
    cacheChanged: 'The replay CHANGED the cache.',
    none: 'Nothing to verify yet.',
    notYet: 'Not verified yet.',
  },

  work: {
    heading: 'Avoided work',
    about:
      'Total cost so far with the cache, against recomputing the whole text at every step. Filled marks are measured, hollow ones computed.',
    empty: 'The comparison appears here after a prefill.',
    runAll: 'Measure every replay',
    runAllHint: 'Replays every prefix, so that every point is measured.',
    running: (one: number, total: number) =>
      total === 0 ? 'Replay…' : `Replay ${one} of ${total}`,
    allRun: 'Every replay has been measured.',
    table: 'Numbers as a table',
    derivation: 'Why it grows like this',
    derive: {
      one: 'Take one layer and one head. With the cache, the step at length t compares one new query with t keys: t scores. Growing to length T one token at a time makes',
      two: 'A replay at length t fills a grid of t × t scores (half of them masked). Replaying at every step up to T makes',
      three:
        'One sum is over t, the other over t². The cache avoids (T³ − T)/3 scores per head, so the saving grows by a factor of T faster than the text. Without the masked half, a replay makes t(t + 1)/2 query–key products, and the cache avoids exactly half as much: (T³ − T)/6.',
      four: 'Projections and feed-forward behave alike: the cache handles 1 row per step instead of t, so T rows in all instead of T(T + 1)/2.',
      example: (T: number, heads: number, cached: string, replay: string, avoided: string) =>
        `For this model (${heads} heads in all) at T = ${T}, one token at a time: ${replay} − ${cached} = ${avoided} = ${heads} × (${T}³ − ${T})/3 scores avoided.`,
      run: (prefilled: number, T: number, cached: string, replay: string) =>
        `This run began with a prefill of ${plural(prefilled, 'token', 'tokens')} and has ${T} now: ${cached} scores with the cache, ${replay} with replays, as the chart of scores (full grid) shows.`,
    },
  },

  breakIt: {
    heading: 'Try to break it',
    about:
      'Each button makes a real call that the engine must refuse. Hashes, lengths and counters before and after show that a refused call changes nothing.',
    all: 'Try all',
    try: 'Try',
    attempts: {
      decodeFirst: { name: 'Decode before prefill', text: 'Decodes with an empty cache.' },
      prefillTwice: {
        name: 'Prefill twice',
        text: 'Prefills a second prompt into a non-empty cache.',
      },
      outOfRange: {
        name: 'Token out of range',
        text: 'Decodes an id just past the end of the vocabulary.',
      },
      pastCapacity: {
        name: 'Past the capacity',
        text: 'Fills a separate 4-row cache, then decodes one more token.',
      },
      editBorrowed: {
        name: 'Edit a weight in use',
        text: 'Replaces a weight while a session is using the model.',
      },
      bindAfterEdit: {
        name: 'Bind after a weight edit',
        text: 'Replaces a weight, then binds a cache made before the change.',
      },
      abortPrefill: {
        name: 'Abort mid-prefill',
        text: 'Aborts after the first chunk of rows is computed.',
      },
      plantNaN: { name: 'Plant a NaN', text: 'Puts a NaN into a weight.' },
    },
    refused: 'Refused',
    notRefused: 'NOT refused',
    hashes: 'Hashes, length and counters',
    same: 'Nothing changed',
    notSame: 'Something CHANGED',
    rows: (n: number) => plural(n, 'row', 'rows'),
    layer: (n: number) => `layer ${n}`,
    weights: 'weights',
    own: (n: number) => `Your own session’s ${plural(n, 'row', 'rows')}: also unchanged.`,
    ownChanged: 'Your own session CHANGED.',
    before: 'Before',
    after: 'After',
  },

  files: {
    heading: 'Export and share',
    about: 'Everything on this page as files. A saved trace reopens here without its model.',
    trace: 'Trace (JSON)',
    calls: 'Steps (CSV)',
    tokens: 'Tokens (CSV)',
    candidates: 'Candidates (CSV)',
    work: 'Work (CSV)',
    openTrace: 'Open a trace…',
    copyLink: 'Copy a link to this state',
    copied: 'Link copied',
    viewing: (name: string, model: string) =>
      `You are viewing ${name}, a saved trace of ${model}. No model is running.`,
    back: 'Back to the live session',
    modelHash: (hash: string) => `Model hash ${hash}`,
    faults: {
      not_json: 'This file is not JSON.',
      not_a_trace: 'This file is JSON but not a kvlens trace: it lacks "schema": "kvlens-trace".',
      other_version: 'This trace has a different schema version. This page reads version 1.',
      incomplete: 'This trace lacks fields that version 1 requires, or has them in another form.',
    },
  },

  keys: {
    heading: 'Keyboard shortcuts',
    enabled: 'Single-key shortcuts',
    enabledHint: 'When off, letter keys and Space do nothing.',
    list: {
      '?': 'This help',
      P: 'Prefill the prompt',
      T: 'Step one prompt token',
      G: 'Decode the most likely token',
      S: 'Sample a token and decode it',
      Space: 'Play or pause',
      V: 'Verify by replay',
      R: 'Reset',
      Esc: 'Release the selection; stop',
    },
    space: 'Space',
    figures: 'In figures and bars',
    arrows: 'Arrow keys',
    arrowsText: 'Move from cell to cell and read the value.',
    enter: 'Enter',
    enterText: 'Pin the cell, or select the head or token.',
    pointer: 'With a pointer',
    pointerText: 'Hover to preview, click to pin, Esc to release.',
  },

  problem: {
    dismiss: 'Dismiss',
    unexpected: (message: string) => `Unexpected error: ${message}`,
  },
  error: (error: AnyKvLensError): { readonly text: string; readonly original?: string } => ({
    text: error.message,
  }),
  said: {
    appended: (phase: string, n: number, length: number) =>
      `${phase}: ${plural(n, 'row', 'rows')} added, the cache has ${length}.`,
    token: (token: string, length: number) => `${token}, ${plural(length, 'row', 'rows')} cached.`,
    forked: (n: number) => `Rewound: ${plural(n, 'row', 'rows')} kept.`,
    reset: 'The cache is empty.',
    verifiedEqual: 'Verified: equal, bit for bit.',
    verifiedDifferent: 'Verified: not equal.',
    loaded: (name: string) => `${name} is ready.`,
  },
  bytes: (value: string, unit: 'B' | 'KB' | 'MB' | 'GB') => `${value} ${unit}`,
};

export type Messages = typeof en;
