// Figures of the peers from an earlier run on a quiet machine (two x86-64 cores, Chromium 156;
// medians, tokens a second), for rows that a run cannot measure. They were taken on another day,
// maybe on another machine: a comparison with them is marked.
const row = (runtime, weights, threads, measure, position, median) => ({
  runtime,
  weights,
  threads,
  measure,
  position,
  tokensPerSecond: { min: median, median, max: median },
  stored: true,
});

export const baselines = [
  row('wllama', 'q8_0', 1, 'prefill', 256, 38),
  row('wllama', 'q8_0', 1, 'decode', 64, 17.5),
  row('wllama', 'q8_0', 2, 'prefill', 256, 65),
  row('wllama', 'q8_0', 2, 'decode', 64, 22),
  row('wllama', 'q4_0', 1, 'prefill', 256, 17),
  row('wllama', 'q4_0', 1, 'decode', 64, 9.9),
  row('onnxruntime-web', 'int8', 1, 'prefill', 256, 330),
  row('onnxruntime-web', 'int8', 1, 'decode', 64, 26.8),
  row('onnxruntime-web', 'int8', 2, 'prefill', 256, 569),
  row('onnxruntime-web', 'int8', 2, 'decode', 64, 35.1),
  row('onnxruntime-web', 'f32', 1, 'prefill', 256, 149),
  row('onnxruntime-web', 'f32', 1, 'decode', 64, 29.3),
  row('onnxruntime-web', 'f32', 2, 'prefill', 256, 276),
  row('onnxruntime-web', 'f32', 2, 'decode', 64, 34),
];

/** `rows` and, where they have nothing of a peer to compare with, stored ones. */
export function withBaselines(rows) {
  // Any weights of onnxruntime-web will do: its best row counts.
  const compared = (stored) => [
    'runtime',
    'threads',
    'measure',
    'position',
    ...(stored.runtime === 'wllama' ? ['weights'] : []),
  ];
  return [
    ...rows,
    ...baselines.filter(
      (stored) =>
        !rows.some((measured) => compared(stored).every((name) => measured[name] === stored[name])),
    ),
  ];
}
