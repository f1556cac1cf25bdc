// Storage types of the benchmark's files: ggml's Q8_0 and Q4_0 blocks and int8 with one scale a
// tensor.
const blockValues = 32;

const floatBits = new Float32Array(1);
const integerBits = new Uint32Array(floatBits.buffer);

/**
 * Nearest half-precision value, ties to even, as bits. Scales are normal and small: no overflow
 * handled.
 */
export function toHalf(value) {
  floatBits[0] = value;
  const bits = integerBits[0];
  const sign = (bits >>> 16) & 0x8000;
  const exponent = ((bits >>> 23) & 0xff) - 112;
  if (exponent <= 0) return sign; // below the normal range: 0
  const rounded = (exponent << 23) | (bits & 0x7fffff);
  return sign | ((rounded + 0xfff + ((rounded >>> 13) & 1)) >>> 13);
}

/** Blocks of a half scale and 32 int8. */
export function quantiseQ8_0(values) {
  const bytes = Buffer.alloc((values.length / blockValues) * 34);
  for (let begin = 0, at = 0; begin < values.length; begin += blockValues, at += 34) {
    let largest = 0;
    for (let i = begin; i < begin + blockValues; ++i)
      largest = Math.max(largest, Math.abs(values[i]));
    const scale = largest / 127;
    const inverse = scale === 0 ? 0 : 1 / scale;
    bytes.writeUInt16LE(toHalf(scale), at);
    for (let i = 0; i < blockValues; ++i)
      bytes[at + 2 + i] = Math.round(values[begin + i] * inverse);
  }
  return bytes;
}

/**
 * Blocks of a half scale and 32 nibbles with offset 8; value i is in the low half of byte i % 16
 * for i < 16.
 */
export function quantiseQ4_0(values) {
  const bytes = Buffer.alloc((values.length / blockValues) * 18);
  const nibble = (value) => Math.min(15, Math.floor(value + 8.5));
  for (let begin = 0, at = 0; begin < values.length; begin += blockValues, at += 18) {
    let extreme = 0;
    for (let i = begin; i < begin + blockValues; ++i) {
      if (Math.abs(values[i]) > Math.abs(extreme)) extreme = values[i];
    }
    const scale = extreme / -8; // the extreme value is exact
    const inverse = scale === 0 ? 0 : 1 / scale;
    bytes.writeUInt16LE(toHalf(scale), at);
    for (let i = 0; i < 16; ++i) {
      bytes[at + 2 + i] =
        nibble(values[begin + i] * inverse) | (nibble(values[begin + 16 + i] * inverse) << 4);
    }
  }
  return bytes;
}

/** One scale for all values, as onnxruntime's dynamic quantisation makes it. */
export function quantiseInt8(values) {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, Math.abs(value));
  const scale = largest / 127;
  const data = new Int8Array(values.length);
  for (let i = 0; i < values.length; ++i) data[i] = Math.round(values[i] / scale);
  return { scale, data };
}
