import { loadCore } from 'kvlens/core';
import { expect, test } from 'vitest';
import { parameterSpecs } from '../../../web/src/files/checkpoint.js';
import type { Config } from '../../../web/src/types.js';

const base: Config = {
  nLayers: 2,
  nHeads: 4,
  nKvHeads: 2,
  headDim: 6,
  dModel: 16,
  dFf: 20,
  vocabSize: 10,
  maxSeqLen: 8,
  rmsNormEps: 1e-5,
  rope: { pairing: 'half_split', theta: 10000, freqFactors: [] },
  qkvBias: false,
  qkNorm: false,
  tiedEmbedding: true,
  slidingWindow: 0,
};

test('files are checked against the parameters that the core calls for', async () => {
  const core = await loadCore();
  for (const qkvBias of [false, true]) {
    for (const qkNorm of [false, true]) {
      for (const tiedEmbedding of [false, true]) {
        const config = { ...base, qkvBias, qkNorm, tiedEmbedding };
        expect(parameterSpecs(config)).toEqual(core.parameterSpecs(config));
      }
    }
  }
  core.dispose();
});
