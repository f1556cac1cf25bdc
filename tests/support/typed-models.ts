/** A decoder with its matrices stored in any type, of bytes that are the same on every machine. */
import { DTYPES, type ConfigInput, type Core, type DType, type Model } from 'kvlens/core';

import { dtypes } from '../../web/src/files/dtypes.js';
import { floatBytes, richConfig } from './kvlens.js';

/** Mulberry32, for bytes that are the same everywhere. */
function words(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let z = Math.imul(state ^ (state >>> 15), 1 | state);
    z = (z + Math.imul(z ^ (z >>> 7), 61 | z)) ^ z;
    return (z ^ (z >>> 14)) >>> 0;
  };
}

/** Where the half-precision scales of a block are, by type. */
const scales: Partial<Record<DType, number[]>> = {
  q8_0: [0],
  q4_0: [0],
  q4_1: [0, 2],
  q5_0: [0],
  q5_1: [0, 2],
  q2_k: [80, 82],
  q3_k: [108],
  q4_k: [0, 2],
  q5_k: [0, 2],
  q6_k: [208],
};

/** Random bytes of a type, with small finite scales. */
function randomBytes(dtype: DType, values: number, next: () => number): Uint8Array {
  const info = dtypes[dtype];
  const small = (): number => (next() / 2 ** 32 - 0.5) * 0.2;
  if (dtype === 'f64') return new Uint8Array(Float64Array.from({ length: values }, small).buffer);
  if (dtype === 'f32') return new Uint8Array(Float32Array.from({ length: values }, small).buffer);
  const bytes = Uint8Array.from(
    { length: (values / info.blockValues) * info.blockBytes },
    () => next() & 0xff,
  );
  const view = new DataView(bytes.buffer);
  const offsets = scales[dtype] ?? [0];
  for (let block = 0; block < bytes.length; block += info.blockBytes) {
    for (const offset of offsets) {
      // Half precision: exponent 2^-8 or so; bfloat16: 2^-5 or so; the sign and the mantissa as
      // they come.
      const bits = next();
      view.setUint16(
        block + offset,
        dtype === 'bf16' ? (bits & 0x807f) | 0x3d00 : (bits & 0x80ff) | 0x1c00,
        true,
      );
    }
  }
  return bytes;
}

// One row of 256 is the smallest that every type can hold.
export const typedConfig: ConfigInput = {
  ...richConfig,
  nHeads: 8,
  nKvHeads: 4,
  headDim: 32,
  rope: { theta: 5000 },
  dModel: 256,
  dFf: 256,
  vocabSize: 40,
  maxSeqLen: 160,
};

/** Matrices of `dtype`, vectors of plain floats. */
export function typedModel(core: Core, dtype: DType): Model {
  const random = words(DTYPES.indexOf(dtype) + 1);
  const plain = dtype === 'f64' ? 'f64' : 'f32';
  return core.createModel(
    typedConfig,
    core.parameterSpecs(typedConfig).map(({ name, shape }) => {
      const [rows, cols] = shape.length === 1 ? [1, shape[0]!] : (shape as [number, number]);
      const type = shape.length === 1 ? plain : dtype;
      const data = name.endsWith('norm')
        ? floatBytes(plain, Array(cols).fill(1))
        : randomBytes(type, rows * cols, random);
      return { name, dtype: type, data };
    }),
  );
}
