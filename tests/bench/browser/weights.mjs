// Made-up weights, the same for every runtime: each tensor is drawn from a generator seeded by its
// name, so that files can be written in any order and one at a time.
import { layerMatrices, shape } from './shape.mjs';

function seedOf(name) {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash | 1;
}

/** A step of xorshift32, which has no state 0: a hundred million draws have to take seconds. */
function advance(state) {
  state ^= state << 13;
  state ^= state >>> 17;
  return state ^ (state << 5);
}

/**
 * `rows * cols` values, uniform with variance 1 / cols: the scale of a row's sum is that of its
 * inputs.
 */
export function drawMatrix(name, rows, cols) {
  const values = new Float32Array(rows * cols);
  const scale = Math.sqrt(3 / cols) / 2 ** 31;
  let state = seedOf(name);
  for (let i = 0; i < values.length; ++i) {
    state = advance(state);
    values[i] = state * scale;
  }
  return values;
}

/** Gains near 1, so that leaving them out would show. */
export function drawGain(name) {
  return drawMatrix(name, 1, shape.dModel).map((value) => 1 + value);
}

/** Names and sizes of all matrices in file order; the vocabulary head is the embedding. */
export function matrices() {
  const list = [{ name: 'embedding', rows: shape.vocabSize, cols: shape.dModel }];
  for (let layer = 0; layer < shape.nLayers; ++layer) {
    for (const [kind, [rows, cols]] of Object.entries(layerMatrices)) {
      list.push({ name: `${layer}.${kind}`, layer, kind, rows, cols });
    }
  }
  return list;
}

/**
 * Rows of a q or k projection from interleaved pairs (2i, 2i + 1), as GGUF has them, to half-split
 * ones (i, i + headDim / 2), as the ONNX rotary operator takes them.
 */
export function toHalfSplit(values, rows, cols) {
  const half = shape.headDim / 2;
  const out = new Float32Array(values.length);
  for (let row = 0; row < rows; ++row) {
    const inHead = row % shape.headDim;
    const target = row - inHead + (inHead >> 1) + (inHead & 1) * half;
    out.set(values.subarray(row * cols, (row + 1) * cols), target * cols);
  }
  return out;
}

/** The text of a token that is neither special nor a byte: one character. */
export const tokenText = (id) => String.fromCodePoint(0x20000 + id);
export const tokenOfText = (text) => text.codePointAt(0) - 0x20000;

/** The same made-up prompt for every runtime; ids below 300 are special or lone bytes. */
export function promptTokens(length) {
  let state = seedOf('prompt');
  return Array.from({ length }, () => {
    state = advance(state);
    return 300 + ((state >>> 0) % (shape.vocabSize - 300));
  });
}
