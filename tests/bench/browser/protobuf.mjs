// As much of the protobuf wire format as writing an ONNX file takes. A message is a list of chunks
// with its length, so that hundreds of megabytes of weights are never copied to be nested.

/** A message of fields, each made by one of the functions below. */
export function message(...fields) {
  const chunks = fields.flat(Infinity).flatMap((field) => field.chunks);
  return { chunks, length: chunks.reduce((sum, chunk) => sum + chunk.length, 0) };
}

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    bytes.push(rest > 0n ? low | 128 : low);
  } while (rest > 0n);
  return Buffer.from(bytes);
}

const tag = (number, wireType) => varint((number << 3) | wireType);

export const integer = (number, value) => ({ chunks: [tag(number, 0), varint(value)] });

export const text = (number, value) => bytes(number, Buffer.from(value));

export const bytes = (number, value) => ({ chunks: [tag(number, 2), varint(value.length), value] });

export const nested = (number, value) => ({
  chunks: [tag(number, 2), varint(value.length), ...value.chunks],
});

export function float(number, value) {
  const bits = Buffer.alloc(4);
  bits.writeFloatLE(value);
  return { chunks: [tag(number, 5), bits] };
}
