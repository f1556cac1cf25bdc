// The shape of SmolLM2-135M, which the peers' baselines are measured on. Values do not matter to
// speed, so the weights are made up (see weights.mjs) and nothing has to be downloaded.
export const shape = {
  nLayers: 30,
  dModel: 576,
  dFf: 1536,
  nHeads: 9,
  nKvHeads: 3,
  headDim: 64,
  vocabSize: 49152,
  // Twice the checkpoint's: the scaling run decodes beyond 8192.
  maxSeqLen: 16384,
  ropeTheta: 1e5,
  rmsNormEps: 1e-5,
};

const kvDim = shape.nKvHeads * shape.headDim;

/** The matrices of one layer, `[rows, cols]` = `[out, in]`. */
export const layerMatrices = {
  q: [shape.nHeads * shape.headDim, shape.dModel],
  k: [kvDim, shape.dModel],
  v: [kvDim, shape.dModel],
  o: [shape.dModel, shape.nHeads * shape.headDim],
  gate: [shape.dFf, shape.dModel],
  up: [shape.dFf, shape.dModel],
  down: [shape.dModel, shape.dFf],
};

const layerValues = Object.values(layerMatrices).reduce(
  (sum, [rows, cols]) => sum + rows * cols,
  0,
);
const headValues = shape.vocabSize * shape.dModel;

/** Multiply-adds with weights: of a row through the layers, and of the vocabulary head. */
export const rowMultiplyAdds = shape.nLayers * layerValues;
export const headMultiplyAdds = headValues;

/** Bytes of all matrices in a storage type: what a decoded token has to read. */
export function weightBytes(weights) {
  const bytesPerValue = { q8_0: 34 / 32, q4_0: 18 / 32, int8: 1, f32: 4 }[weights];
  return (shape.nLayers * layerValues + headValues) * bytesPerValue;
}
