/**
 * GGUF files of llama, qwen2 and qwen3 as checkpoints.
 *
 * Only keys that are known not to change the numbers, or whose effect is implemented, are accepted:
 * an unknown key of the architecture is refused, because ignoring it might give another model's
 * logits.
 */
import type { Config, RopePairing } from '../types.js';
import {
  bindTensors,
  checkConfig,
  limits,
  tokenizerOrProblem,
  totalBytesOf,
  Warnings,
  type Checkpoint,
} from './checkpoint.js';
import { GgufMetadata, readGguf, type GgufFile } from './gguf.js';
import { ggufChatTemplate, ggufTokenizer } from './gguf-tokenizer.js';
import { own } from './json.js';
import { invalid, show, unsupported } from './file-errors.js';
import { linearFactors } from './rope.js';
import { baseName, openRequired, type ByteSource, type OpenByName } from './source.js';
import { checkTensorTable, type FileTensor } from './tensor-table.js';

interface Architecture {
  readonly pairing: RopePairing;
  /** `either`: the tensors show it. */
  readonly qkvBias: boolean | 'either';
  readonly qkNorm: boolean;
}

// Converters permute the rows of q and k of llama checkpoints for interleaved pairs.
const architectures: Readonly<Record<string, Architecture>> = {
  llama: { pairing: 'interleaved', qkvBias: 'either', qkNorm: false },
  qwen2: { pairing: 'half_split', qkvBias: true, qkNorm: false },
  qwen3: { pairing: 'half_split', qkvBias: false, qkNorm: true },
};

// Keys after the prefix of the architecture that are read below.
const readKeys = new Set([
  'block_count',
  'context_length',
  'embedding_length',
  'feed_forward_length',
  'vocab_size',
  'attention.head_count',
  'attention.head_count_kv',
  'attention.key_length',
  'attention.value_length',
  'attention.layer_norm_rms_epsilon',
  'attention.sliding_window',
  'rope.dimension_count',
  'rope.freq_base',
  'rope.scaling.type',
  'rope.scaling.factor',
  'rope.scale_linear',
]);
// Keys that do not change the logits.
const inertKeys = new Set([
  'rope.scaling.original_context_length',
  'rope.scaling.finetuned',
  'pooling_type',
  'classifier.output_labels',
]);
// Keys that are accepted with the only value that has no effect.
const neutralValues: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['expert_count', 0],
  ['expert_used_count', 0],
  ['expert_shared_count', 0],
  ['use_parallel_residual', false],
  ['attention.causal', true],
  ['rope.scaling.attn_factor', 1],
  ['logit_scale', 1],
  ['attn_logit_softcapping', 0],
  ['final_logit_softcapping', 0],
  ['tensor_data_layout', 'Meta AI original pth'],
]);

/**
 * Describes the model in a GGUF file. `open` finds the other files of a split one by name.
 * Errors: invalid_file, unsupported_file, truncated_file, missing_file and those of the sources.
 */
export async function ggufCheckpoint(
  source: ByteSource,
  open: OpenByName,
  signal?: AbortSignal,
): Promise<Checkpoint> {
  const first = await readGguf(source, signal);
  const file = source.name;
  const metadata = new GgufMetadata(file, first.metadata);
  const tensors = await allTensors(first, metadata, open, signal);
  const architecture = metadata.string('general.architecture') ?? '';
  const traits = own(architectures, architecture);
  if (traits === undefined) {
    const found = metadata.raw('general.architecture');
    throw unsupported(file, 'general.architecture', found, Object.keys(architectures).join(', '));
  }
  checkKeys(metadata, architecture);

  const factorTensor = tensors.find((tensor) => tensor.name === 'rope_freqs.weight');
  const weights = tensors.filter((tensor) => tensor !== factorTensor);
  const names = new Set(weights.map((tensor) => tensor.name));
  const warnings = new Warnings();
  const tokenizer = await tokenizerOrProblem(file, warnings, () =>
    ggufTokenizer(metadata, warnings),
  );
  const shape = readShape(metadata, architecture, warnings);
  const scaling = linearFactors(linearScale(metadata, architecture), shape.headDim);
  const freqFactors = factorTensor
    ? multiply(await readFactors(factorTensor, shape.headDim, signal), scaling)
    : scaling;
  const config: Config = {
    ...shape,
    rope: {
      pairing: traits.pairing,
      theta: metadata.positive(`${architecture}.rope.freq_base`, 10000),
      freqFactors,
    },
    qkvBias: traits.qkvBias === 'either' ? names.has('blk.0.attn_q.bias') : traits.qkvBias,
    qkNorm: traits.qkNorm,
    tiedEmbedding: !names.has('output.weight'),
  };
  checkConfig(file, config, {
    nHeads: `${architecture}.attention.head_count`,
    nKvHeads: `${architecture}.attention.head_count_kv`,
    headDim: `${architecture}.attention.key_length`,
  });
  const bound = bindTensors(file, config, weights, canonicalName);
  return {
    format: 'gguf',
    architecture,
    name: metadata.string('general.name'),
    config,
    tensors: bound,
    totalBytes: totalBytesOf(bound),
    ...tokenizer,
    warnings: warnings.list,
    chatTemplate: ggufChatTemplate(metadata),
    metadata: displayed(first),
  };
}

function checkKeys(metadata: GgufMetadata, architecture: string): void {
  const prefix = `${architecture}.`;
  for (const key of metadata.keys()) {
    const name = key.startsWith(prefix) ? key.slice(prefix.length) : undefined;
    if (name === undefined || readKeys.has(name) || inertKeys.has(name)) continue;
    const value = metadata.raw(key);
    const neutral = neutralValues.get(name);
    if (neutral === undefined) throw unsupported(metadata.file, key, value, 'no such key');
    if (value !== neutral) throw unsupported(metadata.file, key, value, show(neutral));
  }
}

/** The fields of a Config that are numbers in the metadata. */
function readShape(metadata: GgufMetadata, architecture: string, warnings: Warnings) {
  const { file } = metadata;
  const nLayers = metadata.integer(`${architecture}.block_count`, 1, limits.nLayers);
  const integer = (name: string, most: number, fallback?: number, least = 1) =>
    metadata.integer(`${architecture}.${name}`, least, most, fallback);
  const dModel = integer('embedding_length', limits.dModel);
  const perLayer = (name: string, most: number, fallback?: number) =>
    metadata.integerPerLayer(`${architecture}.${name}`, 1, most, nLayers, fallback);
  const nHeads = perLayer('attention.head_count', limits.nHeads);
  const keyLength = `${architecture}.attention.key_length`;
  if (!metadata.has(keyLength) && dModel % nHeads !== 0) {
    const allowed = `a multiple of ${architecture}.attention.head_count ${nHeads}`;
    throw invalid(file, `${architecture}.embedding_length`, dModel, allowed);
  }
  const headDim = integer('attention.key_length', limits.headDim, dModel / nHeads);
  for (const name of ['attention.value_length', 'rope.dimension_count']) {
    const value = integer(name, limits.headDim, headDim);
    if (value !== headDim) {
      const supported = `the head dimension ${headDim}`;
      throw unsupported(file, `${architecture}.${name}`, value, supported);
    }
  }
  const tokens = metadata.raw('tokenizer.ggml.tokens');
  const tokenCount = Array.isArray(tokens) && tokens.length > 0 ? tokens.length : undefined;
  const vocabKey = `${architecture}.vocab_size`;
  const declared = metadata.integer(vocabKey, 1, limits.vocabSize, tokenCount);
  if (tokenCount !== undefined && declared !== tokenCount) {
    warnings.add(file, vocabKey, declared, `tokenizer.ggml.tokens has ${tokenCount} tokens`);
  }
  return {
    nLayers,
    nHeads,
    nKvHeads: perLayer('attention.head_count_kv', limits.nHeads, nHeads),
    headDim,
    dModel,
    dFf: perLayer('feed_forward_length', limits.dFf),
    vocabSize: tokenCount ?? declared,
    maxSeqLen: integer('context_length', limits.maxSeqLen),
    rmsNormEps: metadata.positive(`${architecture}.attention.layer_norm_rms_epsilon`),
    slidingWindow: integer('attention.sliding_window', limits.maxSeqLen, 0, 0),
  };
}

/** Linear scaling is the default type of the format. Its factor once had another key. */
function linearScale(metadata: GgufMetadata, architecture: string): number {
  const typeKey = `${architecture}.rope.scaling.type`;
  const type = metadata.string(typeKey) ?? 'linear';
  if (type !== 'linear' && type !== 'none') {
    const supported = 'none, linear, and llama3 as rope_freqs.weight';
    throw unsupported(metadata.file, typeKey, type, supported);
  }
  const old = metadata.positive(`${architecture}.rope.scale_linear`, 1);
  const factor = metadata.positive(`${architecture}.rope.scaling.factor`, old);
  return type === 'none' ? 1 : factor;
}

async function readFactors(
  tensor: FileTensor,
  headDim: number,
  signal: AbortSignal | undefined,
): Promise<number[]> {
  const { name, source, dtype, shape, byteOffset, byteLength } = tensor;
  if (dtype !== 'f32') throw unsupported(source.name, `type of ${name}`, dtype, 'F32');
  if (shape.length !== 1 || shape[0] !== headDim / 2) {
    throw invalid(source.name, `shape of ${name}`, shape, `[${headDim / 2}]`);
  }
  const bytes = await source.read(byteOffset, byteLength, signal);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: headDim / 2 }, (_, i) => {
    const factor = view.getFloat32(i * 4, true);
    if (!Number.isFinite(factor) || factor <= 0) {
      throw invalid(source.name, `value ${i} of ${name}`, factor, 'a positive number');
    }
    return factor;
  });
}

function multiply(factors: readonly number[], scaling: readonly number[]): number[] {
  return factors.map((factor, i) => factor * (scaling[i] ?? 1));
}

const globalNames: Readonly<Record<string, string>> = {
  'token_embd.weight': 'token_embedding',
  'output_norm.weight': 'final_norm',
  'output.weight': 'lm_head',
};
const layerNames: Readonly<Record<string, string>> = {
  'attn_norm.weight': 'attention_norm',
  'attn_q.weight': 'q_proj',
  'attn_q.bias': 'q_bias',
  'attn_k.weight': 'k_proj',
  'attn_k.bias': 'k_bias',
  'attn_v.weight': 'v_proj',
  'attn_v.bias': 'v_bias',
  'attn_q_norm.weight': 'q_norm',
  'attn_k_norm.weight': 'k_norm',
  'attn_output.weight': 'o_proj',
  'ffn_norm.weight': 'ffn_norm',
  'ffn_gate.weight': 'gate_proj',
  'ffn_up.weight': 'up_proj',
  'ffn_down.weight': 'down_proj',
};

function canonicalName(name: string): string | undefined {
  const layer = /^blk\.(0|[1-9]\d*)\.(.+)$/.exec(name);
  if (layer === null) return own(globalNames, name);
  const [, index, rest = ''] = layer;
  const known = own(layerNames, rest);
  return known && `layers.${index}.${known}`;
}

/** The tensors of this file and, if it is the first of a split model, of the others. */
async function allTensors(
  first: GgufFile,
  metadata: GgufMetadata,
  open: OpenByName,
  signal: AbortSignal | undefined,
): Promise<readonly FileTensor[]> {
  const file = first.source.name;
  const count = metadata.integer('split.count', 0, 99999, 1);
  if (count <= 1) return first.tensors;
  if (metadata.integer('split.no', 0, count - 1) !== 0) {
    const allowed = '0: a split model is opened by its first file';
    throw invalid(file, 'split.no', metadata.raw('split.no'), allowed);
  }
  const pattern = /^(.*)-00001-of-(\d{5})\.gguf$/.exec(baseName(file));
  if (pattern === null || Number(pattern[2]) !== count) {
    const allowed = `NAME-00001-of-${pad(count)}.gguf, as split.count is ${count}`;
    throw invalid(file, 'file name', baseName(file), allowed);
  }
  const tensors = [...first.tensors];
  for (let no = 1; no < count; ++no) {
    const name = `${pattern[1]}-${pad(no + 1)}-of-${pad(count)}.gguf`;
    const sibling = await openRequired(open, name);
    const shard = await readGguf(sibling, signal);
    const shardMetadata = new GgufMetadata(sibling.name, shard.metadata);
    for (const [key, expected] of [
      ['split.no', no],
      ['split.count', count],
    ] as const) {
      const found = shardMetadata.raw(key);
      if (found !== expected) throw invalid(sibling.name, key, found, String(expected));
    }
    tensors.push(...shard.tensors);
  }
  const total = metadata.integer('split.tensors.count', 0, 2 ** 31, tensors.length);
  if (total !== tensors.length) {
    const allowed = `${tensors.length}, the tensors of all ${count} files`;
    throw invalid(file, 'split.tensors.count', total, allowed);
  }
  checkTensorTable(tensors);
  return tensors;
}

function pad(number: number): string {
  return String(number).padStart(5, '0');
}

function displayed(file: GgufFile): Map<string, string> {
  const entries = new Map([['gguf.version', String(file.version)]]);
  for (const [key, value] of file.metadata) {
    entries.set(key, Array.isArray(value) ? `${value.length} values` : String(value));
  }
  return entries;
}
