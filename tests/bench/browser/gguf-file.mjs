// Writes the benchmark's model as GGUF version 3.
import { closeSync, openSync, writeSync } from 'node:fs';

import { quantiseQ4_0, quantiseQ8_0 } from './quantise.mjs';
import { shape } from './shape.mjs';
import { drawGain, drawMatrix, matrices, tokenText } from './weights.mjs';

const alignment = 32;
const formats = {
  q8_0: { ggmlType: 8, fileType: 7, blockBytes: 34, quantise: quantiseQ8_0 },
  q4_0: { ggmlType: 2, fileType: 2, blockBytes: 18, quantise: quantiseQ4_0 },
};
const ggmlF32 = 0;

// Type numbers of GGUF's metadata values.
const types = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 };

const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const f32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
};
const string = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);
const encode = { u32, i32: u32, f32, string, bool: (value) => Buffer.of(value ? 1 : 0) };

const entry = (key, type, value) =>
  Buffer.concat([string(key), u32(types[type]), encode[type](value)]);
const arrayEntry = (key, type, values) =>
  Buffer.concat([
    string(key),
    u32(types.array),
    u32(types[type]),
    u64(values.length),
    ...values.map(encode[type]),
  ]);

// A SentencePiece vocabulary that loads: three special tokens, all bytes, and characters that
// nothing merges, so that any ids can be given as a text.
function tokenizerEntries() {
  const tokens = ['<unk>', '<s>', '</s>'];
  const kinds = [2, 3, 3]; // unknown, control, control
  for (let byte = 0; byte < 256; ++byte) {
    tokens.push(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
    kinds.push(6); // byte
  }
  while (tokens.length < shape.vocabSize) {
    tokens.push(tokenText(tokens.length));
    kinds.push(1); // normal
  }
  return [
    entry('tokenizer.ggml.model', 'string', 'llama'),
    arrayEntry('tokenizer.ggml.tokens', 'string', tokens),
    arrayEntry(
      'tokenizer.ggml.scores',
      'f32',
      tokens.map((_, index) => -index),
    ),
    arrayEntry('tokenizer.ggml.token_type', 'i32', kinds),
    entry('tokenizer.ggml.unknown_token_id', 'u32', 0),
    entry('tokenizer.ggml.bos_token_id', 'u32', 1),
    entry('tokenizer.ggml.eos_token_id', 'u32', 2),
    entry('tokenizer.ggml.add_bos_token', 'bool', false),
    entry('tokenizer.ggml.add_space_prefix', 'bool', false),
  ];
}

function metadata(format) {
  return [
    entry('general.architecture', 'string', 'llama'),
    entry('general.name', 'string', 'kvlens benchmark'),
    entry('general.file_type', 'u32', format.fileType),
    entry('general.alignment', 'u32', alignment),
    entry('llama.vocab_size', 'u32', shape.vocabSize),
    entry('llama.context_length', 'u32', shape.maxSeqLen),
    entry('llama.embedding_length', 'u32', shape.dModel),
    entry('llama.block_count', 'u32', shape.nLayers),
    entry('llama.feed_forward_length', 'u32', shape.dFf),
    entry('llama.attention.head_count', 'u32', shape.nHeads),
    entry('llama.attention.head_count_kv', 'u32', shape.nKvHeads),
    entry('llama.attention.layer_norm_rms_epsilon', 'f32', shape.rmsNormEps),
    entry('llama.rope.dimension_count', 'u32', shape.headDim),
    entry('llama.rope.freq_base', 'f32', shape.ropeTheta),
    ...tokenizerEntries(),
  ];
}

const matrixNames = {
  q: 'attn_q',
  k: 'attn_k',
  v: 'attn_v',
  o: 'attn_output',
  gate: 'ffn_gate',
  up: 'ffn_up',
  down: 'ffn_down',
};

function tensors(format) {
  const matrix = ({ name, layer, kind, rows, cols }) => ({
    name: kind ? `blk.${layer}.${matrixNames[kind]}.weight` : 'token_embd.weight',
    dims: [cols, rows],
    type: format.ggmlType,
    bytes: ((rows * cols) / 32) * format.blockBytes,
    make: () => format.quantise(drawMatrix(name, rows, cols)),
  });
  const gain = (name, drawn) => ({
    name: `${name}.weight`,
    dims: [shape.dModel],
    type: ggmlF32,
    bytes: shape.dModel * 4,
    make: () => Buffer.from(drawGain(drawn).buffer),
  });
  const list = matrices().map(matrix);
  for (let layer = 0; layer < shape.nLayers; ++layer) {
    list.push(gain(`blk.${layer}.attn_norm`, `${layer}.attention_norm`));
    list.push(gain(`blk.${layer}.ffn_norm`, `${layer}.ffn_norm`));
  }
  list.push(gain('output_norm', 'final_norm'));
  return list;
}

const padded = (bytes) => Math.ceil(bytes / alignment) * alignment;

/** `weights`: `q8_0` or `q4_0`. */
export function writeGguf(path, weights) {
  const format = formats[weights];
  const list = tensors(format);
  const entries = metadata(format);
  let offset = 0;
  const directory = list.map(({ name, dims, type, bytes }) => {
    const item = Buffer.concat([
      string(name),
      u32(dims.length),
      ...dims.map(u64),
      u32(type),
      u64(offset),
    ]);
    offset += padded(bytes);
    return item;
  });
  const header = Buffer.concat([
    Buffer.from('GGUF'),
    u32(3),
    u64(list.length),
    u64(entries.length),
    ...entries,
    ...directory,
  ]);

  const file = openSync(path, 'w');
  const write = (bytes) => {
    writeSync(file, bytes);
    writeSync(file, Buffer.alloc(padded(bytes.length) - bytes.length));
  };
  try {
    write(header);
    for (const tensor of list) write(tensor.make());
  } finally {
    closeSync(file);
  }
}
