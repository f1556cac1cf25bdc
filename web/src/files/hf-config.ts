/**
 * Hugging Face config.json of llama, mistral, qwen2 and qwen3 as a Config.
 *
 * Fields that change the computation are read, or must have the only value that kvlens computes. An
 * absent field has the default of its model class.
 */
import type { Config, RopeSpec } from '../types.js';
import { checkConfig, limits, type Warnings } from './checkpoint.js';
import { isObject, own, type JsonFields } from './json.js';
import { invalid, unsupported } from './file-errors.js';
import { linearFactors, llama3Factors } from './rope.js';

interface Family {
  readonly qkvBias: boolean;
  readonly qkNorm: boolean;
  /** Whether `sliding_window` applies alone, or only together with `use_sliding_window`. */
  readonly windowAlone: boolean;
  /** Whether num_key_value_heads and head_dim may be absent. */
  readonly derivesHeads: boolean;
}

const families: Readonly<Record<string, Family>> = {
  llama: { qkvBias: false, qkNorm: false, windowAlone: false, derivesHeads: true },
  mistral: { qkvBias: false, qkNorm: false, windowAlone: true, derivesHeads: false },
  qwen2: { qkvBias: true, qkNorm: false, windowAlone: false, derivesHeads: false },
  qwen3: { qkvBias: false, qkNorm: true, windowAlone: false, derivesHeads: false },
};

// Fields that are accepted only with a value that has no effect. Most checkpoints lack them.
const neutral: ReadonlyMap<string, readonly unknown[]> = new Map<string, readonly unknown[]>([
  ['attention_bias', [false]],
  ['mlp_bias', [false]],
  ['partial_rotary_factor', [1]],
  ['attn_logit_softcapping', [0]],
  ['final_logit_softcapping', [0]],
  ['attention_multiplier', []],
  ['logits_scaling', [1]],
  ['logit_scale', [1]],
  ['embedding_multiplier', [1]],
  ['residual_multiplier', [1]],
  ['num_experts', [0]],
  ['num_local_experts', [0]],
  ['n_routed_experts', [0]],
  ['num_experts_per_tok', [0]],
  ['no_rope_layers', []],
  ['compression_config', []],
  ['is_encoder_decoder', [false]],
  ['add_cross_attention', [false]],
]);

/**
 * The configuration that a config.json describes, and its `model_type`.
 * Errors: invalid_file, unsupported_file.
 */
export function hfConfig(fields: JsonFields): { architecture: string; config: Config } {
  const { file } = fields;
  const architecture = fields.string('model_type') ?? '';
  const family = own(families, architecture);
  if (family === undefined) {
    const supported = Object.keys(families).join(', ');
    throw unsupported(file, 'model_type', fields.raw('model_type'), supported);
  }
  checkNeutral(fields);
  checkQuantization(fields);
  const activation = fields.string('hidden_act') ?? 'silu';
  if (activation !== 'silu' && activation !== 'swish') {
    throw unsupported(file, 'hidden_act', activation, 'silu');
  }

  const integer = (name: string, most: number, fallback?: number) =>
    fields.integer(name, 1, most, fallback);
  const dModel = integer('hidden_size', limits.dModel);
  const nHeads = integer('num_attention_heads', limits.nHeads);
  const derived = family.derivesHeads;
  if (fields.raw('head_dim') === undefined && dModel % nHeads !== 0) {
    throw invalid(file, 'hidden_size', dModel, `a multiple of num_attention_heads ${nHeads}`);
  }
  // The class default of Qwen 3 is 128 for any width, but its checkpoints always state it.
  const headDim = integer(
    'head_dim',
    limits.headDim,
    architecture === 'qwen3' ? undefined : dModel / nHeads,
  );
  const config: Config = {
    nLayers: integer('num_hidden_layers', limits.nLayers),
    nHeads,
    nKvHeads: integer('num_key_value_heads', limits.nHeads, derived ? nHeads : undefined),
    headDim,
    dModel,
    dFf: integer('intermediate_size', limits.dFf),
    vocabSize: integer('vocab_size', limits.vocabSize),
    maxSeqLen: integer('max_position_embeddings', limits.maxSeqLen),
    rmsNormEps: fields.positive('rms_norm_eps', 1e-6),
    rope: ropeSpec(fields, headDim),
    qkvBias: family.qkvBias,
    qkNorm: family.qkNorm,
    tiedEmbedding: fields.boolean('tie_word_embeddings', false),
    slidingWindow: slidingWindow(fields, family),
  };
  checkConfig(file, config, {
    nHeads: 'num_attention_heads',
    nKvHeads: 'num_key_value_heads',
    headDim: 'head_dim',
  });
  return { architecture, config };
}

function checkNeutral(fields: JsonFields): void {
  for (const [field, allowed] of neutral) {
    const value = fields.raw(field);
    if (value === undefined || allowed.includes(value)) continue;
    const supported = allowed.length > 0 ? allowed.join(' or ') : 'no such field';
    throw unsupported(fields.file, field, value, supported);
  }
}

/** Quantised checkpoints, such as FP8 with scales, are refused by the name of their method. */
function checkQuantization(fields: JsonFields): void {
  const quantization = fields.raw('quantization_config');
  if (quantization === undefined) return;
  const method = isObject(quantization) ? quantization['quant_method'] : quantization;
  const field = 'quantization_config.quant_method';
  throw unsupported(fields.file, field, method, 'weights in F64, F32, F16 or BF16');
}

/** `rope_parameters` holds what older files spread over `rope_theta` and `rope_scaling`. */
function ropeSpec(fields: JsonFields, headDim: number): RopeSpec {
  const { file } = fields;
  const scaling = fields.fieldsOf('rope_parameters') ?? fields.fieldsOf('rope_scaling');
  const theta =
    scaling?.raw('rope_theta') === undefined
      ? fields.positive('rope_theta', 10000)
      : scaling.positive('rope_theta');
  if (scaling !== undefined) checkRopeFields(scaling);
  const pairing = 'half_split';
  const typeField = scaling?.raw('rope_type') === undefined ? 'type' : 'rope_type';
  const type = scaling?.string(typeField) ?? 'default';
  if (scaling === undefined || type === 'default') return { pairing, theta, freqFactors: [] };
  if (type === 'linear') {
    return { pairing, theta, freqFactors: linearFactors(scaling.positive('factor'), headDim) };
  }
  if (type !== 'llama3') {
    throw unsupported(file, scaling.name(typeField), type, 'default, linear and llama3');
  }
  const parameters = {
    factor: scaling.positive('factor'),
    lowFreqFactor: scaling.positive('low_freq_factor'),
    highFreqFactor: scaling.positive('high_freq_factor'),
    originalMaxPositionEmbeddings: scaling.positive('original_max_position_embeddings'),
  };
  if (parameters.highFreqFactor <= parameters.lowFreqFactor) {
    const allowed = `above low_freq_factor ${parameters.lowFreqFactor}`;
    throw invalid(file, scaling.name('high_freq_factor'), parameters.highFreqFactor, allowed);
  }
  return { pairing, theta, freqFactors: llama3Factors(parameters, theta, headDim) };
}

// Other fields belong to other kinds of RoPE. Parameters per layer type are nested fields.
const ropeFields = new Set([
  'rope_type',
  'type',
  'rope_theta',
  'factor',
  'low_freq_factor',
  'high_freq_factor',
  'original_max_position_embeddings',
]);

function checkRopeFields(scaling: JsonFields): void {
  for (const field of scaling.keys()) {
    const value = scaling.raw(field);
    if (value === undefined || ropeFields.has(field)) continue;
    if (field === 'partial_rotary_factor' && value === 1) continue;
    const supported = field === 'partial_rotary_factor' ? '1' : 'no such field';
    throw unsupported(scaling.file, scaling.name(field), value, supported);
  }
}

/** The window of every layer, or 0. Layers of different kinds are not supported. */
function slidingWindow(fields: JsonFields, family: Family): number {
  const { file } = fields;
  const used = family.windowAlone || fields.boolean('use_sliding_window', false);
  // The class of Mistral has a window of 4096 if the field is absent, and none if it is null.
  const silent = family.windowAlone && !fields.has('sliding_window') ? 4096 : 0;
  const window = fields.integer('sliding_window', 0, limits.maxSeqLen, silent);
  const result = used ? window : 0;
  const nLayers = fields.integer('num_hidden_layers', 1, limits.nLayers);

  const types = fields.raw('layer_types');
  if (types !== undefined) {
    const expected = result > 0 ? 'sliding_attention' : 'full_attention';
    const other = Array.isArray(types) ? types.find((type) => type !== expected) : types;
    if (other !== undefined) {
      throw unsupported(file, 'layer_types', other, `${expected} in every layer`);
    }
  } else if (result > 0 && !family.windowAlone) {
    // Without layer_types, the layers from max_window_layers on have the window.
    const full = fields.integer('max_window_layers', 0, limits.nLayers, 28);
    if (full >= nLayers) return 0;
    if (full > 0) throw unsupported(file, 'max_window_layers', full, `0, or at least ${nLayers}`);
  }
  return result;
}

/**
 * `eos_token_id` of a config.json or generation_config.json: one id, a list, or none. An id outside
 * the vocabulary is never sampled and is left out with a warning. Errors: invalid_file.
 */
export function hfStopIds(fields: JsonFields, vocabSize: number, warnings: Warnings): number[] {
  const value = fields.raw('eos_token_id');
  const ids: unknown[] = value === undefined ? [] : Array.isArray(value) ? value : [value];
  return ids.filter((id): id is number => {
    if (typeof id !== 'number' || !Number.isInteger(id)) {
      throw invalid(fields.file, 'eos_token_id', id, 'an id or a list of ids');
    }
    if (id >= 0 && id < vocabSize) return true;
    const consequence = `it is outside the vocabulary of ${vocabSize}, and nothing ends with it`;
    warnings.add(fields.file, 'eos_token_id', id, consequence);
    return false;
  });
}

/** Scalar fields, for display. */
export function displayedConfig(config: Readonly<Record<string, unknown>>): Map<string, string> {
  const entries = new Map<string, string>();
  for (const [key, value] of Object.entries(config)) {
    if (value === null) continue;
    const nested = isObject(value) || Array.isArray(value);
    entries.set(key, nested ? JSON.stringify(value) : String(value));
  }
  return entries;
}
