/**
 * llama2.c's `.bin` (the format without a version, as in the tinyllamas checkpoints) and its
 * tokenizer.bin.
 *
 * The file is a header of seven int32, followed by every tensor in f32 in a fixed order. There is
 * no table, so only the exact length tells such a file from any other.
 */
import { TokenType, type SentencePieceData } from '../text/tokenizer-data.js';
import type { Config } from '../types.js';
import {
  bindTensors,
  checkConfig,
  limits,
  tokenizerOrProblem,
  totalBytesOf,
  Warnings,
  type Checkpoint,
} from './checkpoint.js';
import { invalid, unsupported } from './file-errors.js';
import { truncated, type ByteSource } from './source.js';
import type { FileTensor } from './tensor-table.js';

const headerBytes = 28;
const versionedMagic = 0x616b3432; // "ak42": the later, versioned exports

/**
 * Describes a llama2.c model. Its tokenizer comes from `tokenizer`, the open tokenizer.bin.
 * Errors: invalid_file, unsupported_file, truncated_file and those of the sources.
 */
export async function llama2cCheckpoint(
  source: ByteSource,
  tokenizer: ByteSource | undefined,
  signal?: AbortSignal,
): Promise<Checkpoint> {
  const header = await source.read(0, headerBytes, signal);
  const config = readConfig(source, new DataView(header.buffer, header.byteOffset, headerBytes));
  const tensors = layOut(source, config);
  const bound = bindTensors(source.name, config, tensors, (name) => name);
  const warnings = new Warnings();
  const read = async () => tokenizer && readTokenizer(tokenizer, config.vocabSize, signal);
  return {
    format: 'llama2c',
    architecture: 'llama',
    name: undefined,
    config,
    tensors: bound,
    totalBytes: totalBytesOf(bound),
    ...(await tokenizerOrProblem(tokenizer?.name ?? source.name, warnings, read)),
    warnings: warnings.list,
    chatTemplate: undefined,
    metadata: new Map(),
  };
}

function readConfig(source: ByteSource, view: DataView): Config {
  const file = source.name;
  if (view.getUint32(0, true) === versionedMagic) {
    throw unsupported(file, 'magic', '"ak42"', 'llama2.c files without a version, in f32');
  }
  const field = (name: string, index: number, most: number): number => {
    const value = view.getInt32(index * 4, true);
    if (value < 1 || value > most) throw invalid(file, name, value, `from 1 to ${most}`);
    return value;
  };
  const dModel = field('dim', 0, limits.dModel);
  const nHeads = field('n_heads', 3, limits.nHeads);
  if (dModel % nHeads !== 0) throw invalid(file, 'dim', dModel, `a multiple of n_heads ${nHeads}`);
  const signedVocabSize = view.getInt32(20, true);
  const vocabSize = Math.abs(signedVocabSize); // negative: the head is not tied
  if (vocabSize < 1 || vocabSize > limits.vocabSize) {
    throw invalid(file, 'vocab_size', signedVocabSize, `up to ${limits.vocabSize}, not 0`);
  }
  const config: Config = {
    nLayers: field('n_layers', 2, limits.nLayers),
    nHeads,
    nKvHeads: field('n_kv_heads', 4, limits.nHeads),
    headDim: dModel / nHeads,
    dModel,
    dFf: field('hidden_dim', 1, limits.dFf),
    vocabSize,
    maxSeqLen: field('seq_len', 6, limits.maxSeqLen),
    rmsNormEps: 1e-5,
    rope: { pairing: 'interleaved', theta: 10000, freqFactors: [] },
    qkvBias: false,
    qkNorm: false,
    tiedEmbedding: signedVocabSize > 0,
    slidingWindow: 0,
  };
  const names = { nHeads: 'n_heads', nKvHeads: 'n_kv_heads', headDim: 'dim / n_heads' };
  checkConfig(file, config, names);
  return config;
}

/** The place of each tensor: one kind after the other, each for all layers. */
function layOut(source: ByteSource, config: Config): FileTensor[] {
  const { nLayers, dModel, dFf, headDim, vocabSize } = config;
  const qWidth = config.nHeads * headDim;
  const kvWidth = config.nKvHeads * headDim;
  const tensors: FileTensor[] = [];
  let byteOffset = headerBytes;
  const place = (name: string, shape: readonly number[]) => {
    const byteLength = 4 * shape.reduce((product, size) => product * size, 1);
    tensors.push({ name, dtype: 'f32', shape, source, byteOffset, byteLength });
    byteOffset += byteLength;
  };
  const placeLayers = (name: string, shape: readonly number[]) => {
    for (let i = 0; i < nLayers; ++i) place(`layers.${i}.${name}`, shape);
  };
  place('token_embedding', [vocabSize, dModel]);
  placeLayers('attention_norm', [dModel]);
  placeLayers('q_proj', [qWidth, dModel]);
  placeLayers('k_proj', [kvWidth, dModel]);
  placeLayers('v_proj', [kvWidth, dModel]);
  placeLayers('o_proj', [dModel, qWidth]);
  placeLayers('ffn_norm', [dModel]);
  placeLayers('gate_proj', [dFf, dModel]);
  placeLayers('down_proj', [dModel, dFf]);
  placeLayers('up_proj', [dFf, dModel]);
  place('final_norm', [dModel]);
  byteOffset += 4 * config.maxSeqLen * headDim; // cosines and sines, which the core computes
  if (!config.tiedEmbedding) place('lm_head', [vocabSize, dModel]);
  if (byteOffset > source.size) throw truncated(source.name, byteOffset, source.size);
  if (byteOffset < source.size) {
    const allowed = `${byteOffset}, as the header says`;
    throw invalid(source.name, 'file size', source.size, allowed);
  }
  return tensors;
}

const largestTokenizer = 256 << 20;

/** Reads the scores and pieces of a SentencePiece model. The first 259 ids have fixed roles. */
async function readTokenizer(
  source: ByteSource,
  vocabSize: number,
  signal: AbortSignal | undefined,
): Promise<SentencePieceData> {
  const file = source.name;
  if (source.size > largestTokenizer) {
    throw unsupported(file, 'file size', source.size, `up to ${largestTokenizer} bytes`);
  }
  if (vocabSize < 259) {
    const supported = '259 and more: <unk>, <s>, </s> and 256 bytes';
    throw unsupported(file, 'vocab_size', vocabSize, supported);
  }
  const bytes = await source.read(0, source.size, signal);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const need = (end: number) => {
    if (end > bytes.length) throw truncated(file, end, bytes.length);
  };
  const tokens: string[] = [];
  const types: number[] = [];
  const scores: number[] = [];
  let offset = 4; // after max_token_length
  for (let id = 0; id < vocabSize; ++id) {
    need(offset + 8);
    const length = view.getUint32(offset + 4, true);
    scores.push(view.getFloat32(offset, true));
    offset += 8;
    need(offset + length);
    let text: string;
    try {
      text = utf8.decode(bytes.subarray(offset, offset + length));
    } catch {
      throw invalid(file, `token ${id}`, 'not UTF-8', 'UTF-8');
    }
    offset += length;
    // The file writes U+2581 as a space and puts line breaks around <s> and </s>.
    tokens.push(id < 259 ? text.trim() : text.replaceAll(' ', '\u2581'));
    types.push(typeOf(file, id, text));
  }
  if (offset !== bytes.length) {
    throw invalid(file, 'file size', bytes.length, `${offset}, the end of ${vocabSize} tokens`);
  }
  return {
    kind: 'sentencepiece',
    tokens,
    types,
    scores,
    addSpacePrefix: true,
    bosId: 1,
    eosId: 2,
    unknownId: 0,
    stopIds: [2, 1],
    addBos: true,
    addEos: false,
  };
}

function typeOf(file: string, id: number, text: string): number {
  if (id >= 259) return TokenType.normal;
  if (id === 0) return TokenType.unknown;
  if (id <= 2) return TokenType.control;
  const expected = `<0x${(id - 3).toString(16).toUpperCase().padStart(2, '0')}>`;
  if (text !== expected) throw invalid(file, `token ${id}`, text, expected);
  return TokenType.byte;
}
