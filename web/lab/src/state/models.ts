// The built-in models.
import type { ConfigInput } from 'kvlens';
import type { BuiltInId } from './trace.js';

export const builtInIds: readonly BuiltInId[] = ['stories260k', 'toy'];

/** The build copies it beside index.html. */
export const storiesUrl = (): string =>
  new URL('models/stories260K-q8_0.gguf', document.baseURI).href;
export const storiesName = 'stories260K';

/** Small enough to be checked by hand: 2 layers, 2 heads, width 4, in double precision. */
export const toyName = 'toy 2×2×4';
export const toyConfig: ConfigInput = {
  nLayers: 2,
  nHeads: 2,
  nKvHeads: 2,
  headDim: 2,
  dModel: 4,
  dFf: 4,
  vocabSize: 5,
  maxSeqLen: 4,
  rmsNormEps: 1e-6,
  rope: { pairing: 'interleaved', theta: 10000 },
};
export const toySeed = 38;

/** The example of each: a prompt, and how many greedy tokens the first screen decodes. */
export const examples: Readonly<
  Record<BuiltInId, { readonly prompt: string; readonly decodes: number }>
> = {
  stories260k: { prompt: 'Once upon a time', decodes: 12 },
  toy: { prompt: '0 1', decodes: 1 },
};
