import { describe, expect, test } from 'vitest';
import type { FileErrorCode } from '../../../web/src/errors.js';
import { isKvLensError } from '../../../web/src/errors.js';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import {
  smallHf,
  writeJson,
  writeSafetensors,
  type SafetensorsEntry,
  type SafetensorsFaults,
} from '../../support/hf-writer.js';

type Small = ReturnType<typeof smallHf>;
interface Case {
  readonly name: string;
  readonly code: FileErrorCode;
  readonly says: readonly string[];
  readonly breaks: (model: Small) => SafetensorsFaults | void;
  readonly keep?: number;
  readonly cut?: number;
}

const config = (field: string, value: unknown) => (model: Small) => {
  if (value === undefined) delete model.config[field];
  else model.config[field] = value;
};
const tensor = (name: string, change: Partial<SafetensorsEntry>) => (model: Small) => {
  const old = model.tensors[name] as SafetensorsEntry;
  model.tensors[name] = { ...old, ...change };
};
const extra = (name: string, shape: number[]) => (model: Small) =>
  void (model.tensors[name] = { shape });
const embed = 'model.embed_tokens.weight';
const qwen2 = (change: Record<string, unknown>) => (model: Small) =>
  void Object.assign(model.config, { model_type: 'qwen2' }, change);

const configs: Case[] = [
  {
    name: 'no model_type',
    code: 'unsupported_file',
    says: ['model_type', 'absent', 'llama, mistral, qwen2, qwen3'],
    breaks: config('model_type', undefined),
  },
  {
    name: 'another model_type',
    code: 'unsupported_file',
    says: ['model_type', '"mixtral"'],
    breaks: config('model_type', 'mixtral'),
  },
  {
    name: 'another activation',
    code: 'unsupported_file',
    says: ['hidden_act', '"gelu"', 'silu'],
    breaks: config('hidden_act', 'gelu'),
  },
  {
    name: 'attention_bias',
    code: 'unsupported_file',
    says: ['attention_bias', 'true', 'false'],
    breaks: config('attention_bias', true),
  },
  {
    name: 'mlp_bias',
    code: 'unsupported_file',
    says: ['mlp_bias', 'true'],
    breaks: config('mlp_bias', true),
  },
  {
    name: 'partial rotary',
    code: 'unsupported_file',
    says: ['partial_rotary_factor', '0.5'],
    breaks: config('partial_rotary_factor', 0.5),
  },
  {
    name: 'softcapping',
    code: 'unsupported_file',
    says: ['attn_logit_softcapping', 'is 50'],
    breaks: config('attn_logit_softcapping', 50),
  },
  {
    name: 'experts',
    code: 'unsupported_file',
    says: ['num_local_experts', 'is 8'],
    breaks: config('num_local_experts', 8),
  },
  {
    name: 'quantised',
    code: 'unsupported_file',
    says: ['quantization_config', 'awq'],
    breaks: config('quantization_config', { quant_method: 'awq' }),
  },
  {
    name: 'layers without RoPE',
    code: 'unsupported_file',
    says: ['no_rope_layers'],
    breaks: config('no_rope_layers', [1, 0]),
  },
  {
    name: 'yarn by its old name',
    code: 'unsupported_file',
    says: ['rope_scaling.type', '"yarn"', 'default, linear and llama3'],
    breaks: config('rope_scaling', { type: 'yarn', factor: 4 }),
  },
  {
    name: 'dynamic by its new name',
    code: 'unsupported_file',
    says: ['rope_parameters.rope_type', '"dynamic"'],
    breaks: config('rope_parameters', { rope_type: 'dynamic', factor: 4, rope_theta: 10000 }),
  },
  {
    name: 'longrope',
    code: 'unsupported_file',
    says: ['rope_scaling.rope_type', '"longrope"'],
    breaks: config('rope_scaling', { rope_type: 'longrope' }),
  },
  {
    name: 'linear without a factor',
    code: 'invalid_file',
    says: ['rope_scaling.factor', 'absent'],
    breaks: config('rope_scaling', { type: 'linear' }),
  },
  {
    name: 'llama3 without a bound',
    code: 'invalid_file',
    says: ['rope_scaling.low_freq_factor', 'absent'],
    breaks: config('rope_scaling', { rope_type: 'llama3', factor: 8 }),
  },
  {
    name: 'llama3 with bounds the wrong way round',
    code: 'invalid_file',
    says: ['rope_scaling.high_freq_factor', 'is 1', '4'],
    breaks: config('rope_scaling', {
      rope_type: 'llama3',
      factor: 8,
      low_freq_factor: 4,
      high_freq_factor: 1,
      original_max_position_embeddings: 32,
    }),
  },
  {
    name: 'partial rotary among the RoPE parameters',
    code: 'unsupported_file',
    says: ['rope_parameters.partial_rotary_factor', '0.25'],
    breaks: config('rope_parameters', { rope_type: 'default', partial_rotary_factor: 0.25 }),
  },
  {
    name: 'rope_scaling as text',
    code: 'invalid_file',
    says: ['rope_scaling', '"linear"'],
    breaks: config('rope_scaling', 'linear'),
  },
  ...[
    'hidden_size',
    'intermediate_size',
    'num_hidden_layers',
    'num_attention_heads',
    'vocab_size',
    'max_position_embeddings',
  ].flatMap((field): Case[] => [
    {
      name: `${field} absent`,
      code: 'invalid_file',
      says: [field, 'absent'],
      breaks: config(field, undefined),
    },
    { name: `${field} -1`, code: 'invalid_file', says: [field, '-1'], breaks: config(field, -1) },
    {
      name: `${field} 1e15`,
      code: 'invalid_file',
      says: [field, '1000000000000000'],
      breaks: config(field, 1e15),
    },
  ]),
  {
    name: 'hidden_size as text',
    code: 'invalid_file',
    says: ['hidden_size', '"8"'],
    breaks: config('hidden_size', '8'),
  },
  {
    name: 'heads that do not divide',
    code: 'invalid_file',
    says: ['num_attention_heads', 'is 4', 'num_key_value_heads 3'],
    breaks: config('num_key_value_heads', 3),
  },
  {
    name: 'width that heads do not divide',
    code: 'invalid_file',
    says: ['hidden_size', 'is 8', '3'],
    breaks: (model) => {
      config('num_attention_heads', 3)(model);
      config('head_dim', undefined)(model);
    },
  },
  {
    name: 'odd head dimension',
    code: 'invalid_file',
    says: ['head_dim', 'is 3', 'even'],
    breaks: config('head_dim', 3),
  },
  {
    name: 'head_dim that qwen3 does not tell',
    code: 'invalid_file',
    says: ['head_dim', 'absent'],
    breaks: (model) => {
      config('model_type', 'qwen3')(model);
      config('head_dim', undefined)(model);
    },
  },
  {
    name: 'epsilon 0',
    code: 'invalid_file',
    says: ['rms_norm_eps', 'is 0'],
    breaks: config('rms_norm_eps', 0),
  },
  {
    name: 'theta as text',
    code: 'invalid_file',
    says: ['rope_theta', '"10000"'],
    breaks: config('rope_theta', '10000'),
  },
  {
    name: 'tied as text',
    code: 'invalid_file',
    says: ['tie_word_embeddings', '"no"'],
    breaks: config('tie_word_embeddings', 'no'),
  },
  {
    name: 'EOS that is a name',
    code: 'invalid_file',
    says: ['eos_token_id', '"</s>"', 'an id or a list of ids'],
    breaks: config('eos_token_id', ['</s>']),
  },
  {
    name: 'weights in FP8',
    code: 'unsupported_file',
    says: ['quantization_config.quant_method', '"fp8"'],
    breaks: config('quantization_config', { quant_method: 'fp8', fmt: 'e4m3' }),
  },
  {
    name: 'layers of two kinds',
    code: 'unsupported_file',
    says: ['layer_types', '"sliding_attention"', 'full_attention'],
    breaks: qwen2({ layer_types: ['full_attention', 'sliding_attention'] }),
  },
  {
    name: 'a window from the second layer on',
    code: 'unsupported_file',
    says: ['max_window_layers', 'is 1'],
    breaks: qwen2({ use_sliding_window: true, sliding_window: 4, max_window_layers: 1 }),
  },
];

const tables: Case[] = [
  {
    name: 'empty file',
    code: 'truncated_file',
    says: ['0 bytes', '8 are needed'],
    breaks: () => {},
    keep: 0,
  },
  {
    name: 'cut in the header',
    code: 'truncated_file',
    says: ['100 bytes'],
    breaks: () => {},
    keep: 100,
  },
  { name: 'cut in the data', code: 'truncated_file', says: ['needed'], breaks: () => {}, cut: 1 },
  {
    name: 'bytes after the data',
    code: 'invalid_file',
    says: ['file size', 'belongs to a tensor'],
    breaks: () => ({ extra: 4 }),
  },
  {
    name: 'header length 0',
    code: 'invalid_file',
    says: ['header length', 'is 0'],
    breaks: () => ({ headerLength: 0n }),
  },
  {
    name: 'header length 2^63',
    code: 'invalid_file',
    says: ['header length', '9223372036854775808'],
    breaks: () => ({ headerLength: 2n ** 63n }),
  },
  {
    name: 'header longer than the file',
    code: 'truncated_file',
    says: ['needed'],
    breaks: () => ({ headerLength: 10_000_000n }),
  },
  {
    name: 'header not JSON',
    code: 'invalid_file',
    says: ['header', 'JSON'],
    breaks: () => ({ header: '{"a": ' }),
  },
  {
    name: 'header not an object',
    code: 'invalid_file',
    says: ['header', 'a JSON object'],
    breaks: () => ({ header: '[]' }),
  },
  {
    name: 'a tensor twice',
    code: 'invalid_file',
    says: ['key in header', '"a"', 'unique'],
    breaks: () => ({
      header:
        '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
    }),
  },
  {
    name: 'entry not an object',
    code: 'invalid_file',
    says: ['a is 1', 'object'],
    breaks: () => ({ header: '{"a":1}' }),
  },
  {
    name: 'integers',
    code: 'unsupported_file',
    says: [`dtype of ${embed}`, '"I32"', 'BF16'],
    breaks: tensor(embed, { dtype: 'I32' }),
  },
  {
    name: '8-bit floats',
    code: 'unsupported_file',
    says: [`dtype of ${embed}`, '"F8_E4M3"'],
    breaks: tensor(embed, { dtype: 'F8_E4M3' }),
  },
  {
    name: 'a ggml type',
    code: 'unsupported_file',
    says: [`dtype of ${embed}`, '"Q8_0"'],
    breaks: tensor(embed, { dtype: 'Q8_0' }),
  },
  {
    name: 'dtype as a number',
    code: 'unsupported_file',
    says: [`dtype of ${embed}`, 'is 5'],
    breaks: tensor(embed, { dtype: 5 }),
  },
  {
    name: 'negative shape',
    code: 'invalid_file',
    says: [`shape of ${embed}`, '-6'],
    breaks: tensor(embed, { shape: [-6, 8], bytes: 192 }),
  },
  {
    name: 'shape with a fraction',
    code: 'invalid_file',
    says: [`shape of ${embed}`, '6.5'],
    breaks: tensor(embed, { shape: [6.5, 8], bytes: 192 }),
  },
  {
    name: 'shape not a list',
    code: 'invalid_file',
    says: [`shape of ${embed}`, '"6x8"'],
    breaks: tensor(embed, { shape: '6x8', bytes: 192 }),
  },
  {
    name: 'dimension 0',
    code: 'invalid_file',
    says: [`shape of ${embed}`, '[0, 8]'],
    breaks: tensor(embed, { shape: [0, 8] }),
  },
  {
    name: 'shape beyond 2^53',
    code: 'invalid_file',
    says: [`shape of ${embed}`, '2^53'],
    breaks: tensor(embed, { shape: [2 ** 40, 2 ** 40], bytes: 192 }),
  },
  {
    name: 'offsets and shape differ',
    code: 'invalid_file',
    says: [`data_offsets of ${embed}`, '[0, 188]', '192'],
    breaks: tensor(embed, { data_offsets: [0, 188] }),
  },
  {
    name: 'offsets the wrong way round',
    code: 'invalid_file',
    says: [`data_offsets of ${embed}`, '[192, 0]'],
    breaks: tensor(embed, { data_offsets: [192, 0] }),
  },
  {
    name: 'one offset',
    code: 'invalid_file',
    says: [`data_offsets of ${embed}`, '[0]'],
    breaks: tensor(embed, { data_offsets: [0] }),
  },
  {
    name: 'overlap',
    code: 'invalid_file',
    says: ['offset of', 'where'],
    breaks: tensor('lm_head.weight', { data_offsets: [0, 192] }),
  },
];

const tensors: Case[] = [
  {
    name: 'missing tensor',
    code: 'invalid_file',
    says: ['layers.1.up_proj', 'absent', '[12, 8]'],
    breaks: (model) => void delete model.tensors['model.layers.1.mlp.up_proj.weight'],
  },
  {
    name: 'missing head',
    code: 'invalid_file',
    says: ['lm_head', 'absent'],
    breaks: (model) => void delete model.tensors['lm_head.weight'],
  },
  {
    name: 'extra tensor',
    code: 'unsupported_file',
    says: ['"model.vision.weight"'],
    breaks: extra('model.vision.weight', [1]),
  },
  {
    name: 'bias of the output projection',
    code: 'unsupported_file',
    says: ['"model.layers.0.self_attn.o_proj.bias"'],
    breaks: extra('model.layers.0.self_attn.o_proj.bias', [8]),
  },
  {
    name: 'bias that llama has not',
    code: 'unsupported_file',
    says: ['"model.layers.0.self_attn.q_proj.bias"'],
    breaks: extra('model.layers.0.self_attn.q_proj.bias', [8]),
  },
  {
    name: 'bias that qwen2 lacks',
    code: 'invalid_file',
    says: ['layers.0.q_bias', 'absent'],
    breaks: qwen2({}),
  },
  {
    name: 'head norm that qwen3 lacks',
    code: 'invalid_file',
    says: ['layers.0.q_norm', 'absent'],
    breaks: config('model_type', 'qwen3'),
  },
  {
    name: 'wrong shape',
    code: 'invalid_file',
    says: ['model.layers.0.mlp.down_proj.weight', '[12, 8]', '[8, 12]'],
    breaks: tensor('model.layers.0.mlp.down_proj.weight', { shape: [12, 8] }),
  },
  {
    name: 'vocabulary of another size',
    code: 'invalid_file',
    says: [embed, '[6, 8]', '[7, 8]'],
    breaks: config('vocab_size', 7),
  },
  {
    name: 'a layer too few',
    code: 'unsupported_file',
    says: ['"model.layers.1.'],
    breaks: config('num_hidden_layers', 1),
  },
];

function build({ breaks, keep, cut = 0 }: Case): Record<string, Uint8Array> {
  const model = smallHf();
  const faults = breaks(model) ?? {};
  const weights = writeSafetensors(model.tensors, faults);
  return {
    'config.json': writeJson(model.config),
    'model.safetensors': weights.subarray(0, keep ?? weights.length - cut),
  };
}

test('the model that the cases break is whole', async () => {
  const whole: Case = { name: '', code: 'invalid_file', says: [], breaks: () => {} };
  expect((await openCheckpoint(build(whole))).tensors).toHaveLength(21);
});

async function refusal(files: Record<string, Uint8Array>) {
  const error: unknown = await openCheckpoint(files).catch((reason: unknown) => reason);
  if (!isKvLensError(error)) throw error;
  return error;
}

for (const [group, cases] of Object.entries({
  'config.json': configs,
  table: tables,
  'set of tensors': tensors,
})) {
  describe(`a Hugging Face folder with a broken ${group} is refused`, () => {
    test.each(cases)('$name', async (broken) => {
      const error = await refusal(build(broken));
      expect(error.code).toBe(broken.code);
      for (const part of broken.says) expect(error.message).toContain(part);
      expect(error.message).toMatch(/^(config\.json|model\.safetensors)/);
    });
  });
}

describe('a sharded checkpoint is refused when', () => {
  const first = writeSafetensors({ 'model.norm.weight': { shape: [8] } });
  const open = (
    weightMap: unknown,
    shards: Record<string, Uint8Array> = { 'a.safetensors': first },
  ) => {
    const index = writeJson(weightMap === undefined ? {} : { weight_map: weightMap });
    const config = writeJson(smallHf().config);
    return refusal({ 'model.safetensors.index.json': index, 'config.json': config, ...shards });
  };
  test.each([
    ['the index has no weight_map', undefined, 'invalid_file', 'weight_map is absent'],
    [
      'a shard is a number',
      { 'model.norm.weight': 1 },
      'invalid_file',
      'weight_map of model.norm.weight is 1',
    ],
    [
      'a shard is outside the folder',
      { 'model.norm.weight': '../a.safetensors' },
      'invalid_file',
      '"../a.safetensors"',
    ],
    [
      'a shard is not there',
      { 'model.norm.weight': 'b.safetensors' },
      'missing_file',
      'b.safetensors',
    ],
    [
      'a shard has a tensor that the index lacks',
      { 'lm_head.weight': 'a.safetensors' },
      'invalid_file',
      'weight_map of model.norm.weight is absent',
    ],
    [
      'a shard lacks a tensor that the index has',
      { 'model.norm.weight': 'a.safetensors', 'lm_head.weight': 'a.safetensors' },
      'invalid_file',
      'weight_map of lm_head.weight',
    ],
  ])('%s', async (_, weightMap, code, says) => {
    const error = await open(weightMap);
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
  });

  test('two shards have the same tensor', async () => {
    const error = await open(
      { 'model.norm.weight': 'a.safetensors', x: 'b.safetensors' },
      {
        'a.safetensors': first,
        'b.safetensors': first,
      },
    );
    expect(error.message).toContain('weight_map of model.norm.weight');
  });
});

describe('a folder is refused when', () => {
  test('config.json is missing', async () => {
    const error = await refusal({ 'model.safetensors': writeSafetensors(smallHf().tensors) });
    expect([error.code, error.message]).toEqual([
      'missing_file',
      'the checkpoint has no config.json',
    ]);
  });
  test('config.json has a field twice', async () => {
    const config = writeJson('{"model_type": "llama", "hidden_size": 8, "hidden_size": 16}');
    const weights = writeSafetensors(smallHf().tensors);
    const error = await refusal({ 'config.json': config, 'model.safetensors': weights });
    expect(error.message).toContain('key in contents is "hidden_size", must be unique');
  });
});
