import { loadCore } from 'kvlens/core';

const core = await loadCore();
const shape = { nLayers: 2, nHeads: 2, nKvHeads: 2, headDim: 2, dModel: 4, dFf: 4 };
const config = { ...shape, vocabSize: 5, maxSeqLen: 4 };
const model = core.randomModel(config, { rng: { state: 7n }, dtype: 'f64' });
const session = core.createSession(model, { compute: 'f64' });

session.prefill([0, 1]);
const step = session.decode(2, { capture: 'attention' });
console.log(step.kvLenBefore, '->', step.kvLen, 'rows, attention', step.evidence.attention.shape);
console.log(session.contrast()); // cached 24 scores, replayed 52, avoided 28
console.log(session.verify().bytesEqual); // true
session.dispose();
model.dispose();
