import { describe, expect, test } from 'vitest';
import type { FileErrorCode } from '../../../web/src/errors.js';
import { isKvLensError } from '../../../web/src/errors.js';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import {
  smallGguf,
  writeGguf,
  type GgufContent,
  type GgufEntry,
  type GgufTensorEntry,
} from '../../support/gguf-writer.js';

type Small = ReturnType<typeof smallGguf>;
interface Case {
  readonly name: string;
  readonly code: FileErrorCode;
  /** Each must stand in the message: the field, and the value found. */
  readonly says: readonly string[];
  /** Breaks a whole model; what it returns overrides the header. */
  readonly breaks: (model: Small) => Partial<GgufContent> | void;
  /** Bytes to cut off at the end, or the length to keep. */
  readonly cut?: number;
  readonly keep?: number;
}

const u32 = (value: number): GgufEntry => ({ type: 'u32', value });
const text = (value: string): GgufEntry => ({ type: 'string', value });
const f32 = (value: number): GgufEntry => ({ type: 'f32', value });
const set = (key: string, entry: GgufEntry) => (model: Small) => void model.entries.set(key, entry);
const without = (key: string) => (model: Small) => void model.entries.delete(key);
const tensor = (name: string, change: Partial<GgufTensorEntry>) => (model: Small) => {
  const old = model.tensors.get(name) as GgufTensorEntry;
  model.tensors.set(name, { ...old, ...change });
};
const extra = (entry: GgufTensorEntry) => (model: Small) =>
  void model.tensors.set(entry.name, entry);
const rawArray = (bytes: number[]): GgufEntry => ({
  type: 'raw',
  typeId: 9,
  bytes: Uint8Array.from(bytes),
});

/** A 64-bit number below 256. */
const eight = (value: number): number[] => [value, 0, 0, 0, 0, 0, 0, 0];

const header: Case[] = [
  {
    name: 'magic',
    code: 'invalid_file',
    says: ['magic', '0x46554746'],
    breaks: () => ({ magic: 0x46554746 }),
  },
  {
    name: 'version 0',
    code: 'unsupported_file',
    says: ['version', 'is 0', '1, 2 and 3'],
    breaks: () => ({ version: 0 }),
  },
  {
    name: 'version 4',
    code: 'unsupported_file',
    says: ['version', 'is 4'],
    breaks: () => ({ version: 4 }),
  },
  {
    name: 'big-endian',
    code: 'unsupported_file',
    says: ['version', 'big-endian'],
    breaks: () => ({ version: 0x03000000 }),
  },
  {
    name: 'tensor count beyond the file',
    code: 'truncated_file',
    says: ['bytes', 'needed'],
    breaks: () => ({ tensorCount: 60000 }),
  },
  {
    name: 'absurd tensor count',
    code: 'invalid_file',
    says: ['tensor_count', '18446744073709551615'],
    breaks: () => ({ tensorCount: 2n ** 64n - 1n }),
  },
  {
    name: 'absurd metadata count',
    code: 'invalid_file',
    says: ['metadata_kv_count', '1099511627776'],
    breaks: () => ({ entryCount: 2 ** 40 }),
  },
  {
    name: 'one metadata entry too many',
    code: 'truncated_file',
    says: ['needed'],
    breaks: () => ({ entryCount: 60000 }),
  },
  {
    name: 'a tensor count too low',
    code: 'invalid_file',
    says: ['final_norm', 'absent'],
    breaks: () => ({ tensorCount: 19 }),
  },
  {
    name: 'empty file',
    code: 'truncated_file',
    says: ['0 bytes', '4 are needed'],
    breaks: () => {},
    keep: 0,
  },
  {
    name: 'magic alone',
    code: 'truncated_file',
    says: ['4 bytes', '8 are needed'],
    breaks: () => {},
    keep: 4,
  },
  {
    name: 'cut in the metadata',
    code: 'truncated_file',
    says: ['300 bytes'],
    breaks: () => {},
    keep: 300,
  },
  {
    name: 'cut in the tensor table',
    code: 'truncated_file',
    says: ['1400 bytes'],
    breaks: () => {},
    keep: 1400,
  },
  {
    name: 'cut in the last tensor',
    code: 'truncated_file',
    says: ['needed'],
    breaks: () => {},
    cut: 1,
  },
];

const metadata: Case[] = [
  {
    name: 'value type',
    code: 'invalid_file',
    says: ['value type of general.name', 'is 13'],
    breaks: set('general.name', { type: 'raw', typeId: 13, bytes: new Uint8Array(4) }),
  },
  {
    name: 'element type',
    code: 'invalid_file',
    says: ['element type of general.tags', 'is 99'],
    breaks: set('general.tags', rawArray([99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
  },
  {
    name: 'array longer than the file',
    code: 'truncated_file',
    says: ['needed'],
    breaks: set('general.tags', rawArray([8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0])),
  },
  {
    name: 'absurd array length',
    code: 'invalid_file',
    says: ['length of general.tags', '18446744073709551615'],
    breaks: set('general.tags', rawArray([4, 0, 0, 0, ...new Array<number>(8).fill(255)])),
  },
  {
    name: 'arrays in arrays in arrays',
    code: 'invalid_file',
    says: ['nesting of general.tags', 'at most 4'],
    breaks: set(
      'general.tags',
      rawArray(new Array<number[]>(6).fill([9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).flat()),
    ),
  },
  {
    name: 'string longer than the file',
    code: 'truncated_file',
    says: ['needed'],
    breaks: set('general.name', {
      type: 'raw',
      typeId: 8,
      bytes: Uint8Array.of(255, 255, 255, 0, 0, 0, 0, 0),
    }),
  },
  {
    name: 'string not UTF-8',
    code: 'invalid_file',
    says: ['general.name', 'UTF-8'],
    breaks: set('general.name', { type: 'string', value: Uint8Array.of(0xc3, 0x28) }),
  },
  {
    name: 'string among others not UTF-8',
    code: 'invalid_file',
    says: ['general.tags', 'UTF-8'],
    breaks: set(
      'general.tags',
      rawArray([8, 0, 0, 0, ...eight(2), ...eight(1), 0x61, ...eight(1), 0xff]),
    ),
  },
  // Each is broken, but not one after the other.
  {
    name: 'character cut between two strings',
    code: 'invalid_file',
    says: ['general.tags', 'UTF-8'],
    breaks: set(
      'general.tags',
      rawArray([8, 0, 0, 0, ...eight(2), ...eight(1), 0xc3, ...eight(1), 0xa4]),
    ),
  },
  {
    name: 'boolean 2',
    code: 'invalid_file',
    says: ['add_bos_token', 'is 2'],
    breaks: set('tokenizer.ggml.add_bos_token', { type: 'bool', value: 2 }),
  },
  {
    name: 'empty key',
    code: 'invalid_file',
    says: ['metadata key', '""'],
    breaks: set('', u32(1)),
  },
  {
    name: 'key twice',
    code: 'invalid_file',
    says: ['metadata key', '"llama.block_count"', 'unique'],
    breaks: (model) => ({ entries: [...model.entries, ['llama.block_count', u32(2)]] }),
  },
  {
    name: 'alignment 0',
    code: 'invalid_file',
    says: ['general.alignment', 'is 0'],
    breaks: set('general.alignment', u32(0)),
  },
  {
    name: 'alignment 24',
    code: 'invalid_file',
    says: ['general.alignment', 'is 24', 'power of two'],
    breaks: set('general.alignment', u32(24)),
  },
];

const architecture: Case[] = [
  {
    name: 'no architecture',
    code: 'unsupported_file',
    says: ['general.architecture', 'absent', 'llama, qwen2, qwen3'],
    breaks: without('general.architecture'),
  },
  {
    name: 'another architecture',
    code: 'unsupported_file',
    says: ['general.architecture', '"gemma2"'],
    breaks: set('general.architecture', text('gemma2')),
  },
  {
    name: 'a name of Object.prototype',
    code: 'unsupported_file',
    says: ['"constructor"'],
    breaks: set('general.architecture', text('constructor')),
  },
  {
    name: 'architecture as a number',
    code: 'invalid_file',
    says: ['general.architecture', 'is 7', 'string'],
    breaks: set('general.architecture', u32(7)),
  },
  {
    name: 'experts',
    code: 'unsupported_file',
    says: ['llama.expert_count', 'is 8', '0'],
    breaks: set('llama.expert_count', u32(8)),
  },
  {
    name: 'unknown key',
    code: 'unsupported_file',
    says: ['llama.residual_scale', '0.5'],
    breaks: set('llama.residual_scale', f32(0.5)),
  },
  {
    name: 'logit softcapping',
    code: 'unsupported_file',
    says: ['llama.attn_logit_softcapping', 'is 50'],
    breaks: set('llama.attn_logit_softcapping', f32(50)),
  },
  {
    name: 'yarn',
    code: 'unsupported_file',
    says: ['llama.rope.scaling.type', '"yarn"', 'linear'],
    breaks: set('llama.rope.scaling.type', text('yarn')),
  },
  {
    name: 'longrope',
    code: 'unsupported_file',
    says: ['llama.rope.scaling.type', '"longrope"'],
    breaks: set('llama.rope.scaling.type', text('longrope')),
  },
  {
    name: 'attention not causal',
    code: 'unsupported_file',
    says: ['llama.attention.causal', 'false'],
    breaks: set('llama.attention.causal', { type: 'bool', value: false }),
  },
  {
    name: 'partial rotary',
    code: 'unsupported_file',
    says: ['llama.rope.dimension_count', 'is 1', '2'],
    breaks: set('llama.rope.dimension_count', u32(1)),
  },
  {
    name: 'values wider than keys',
    code: 'unsupported_file',
    says: ['llama.attention.value_length', 'is 4'],
    breaks: set('llama.attention.value_length', u32(4)),
  },
  {
    name: 'tensor layout',
    code: 'unsupported_file',
    says: ['llama.tensor_data_layout', '"other"'],
    breaks: set('llama.tensor_data_layout', text('other')),
  },
];

const shape: Case[] = [
  ...[
    'block_count',
    'context_length',
    'embedding_length',
    'feed_forward_length',
    'attention.head_count',
  ].flatMap((field): Case[] => [
    {
      name: `${field} absent`,
      code: 'invalid_file',
      says: [`llama.${field}`, 'absent'],
      breaks: without(`llama.${field}`),
    },
    {
      name: `${field} 0`,
      code: 'invalid_file',
      says: [`llama.${field}`, 'is 0'],
      breaks: set(`llama.${field}`, u32(0)),
    },
    {
      name: `${field} 2^32 - 1`,
      code: 'invalid_file',
      says: [`llama.${field}`, '4294967295'],
      breaks: set(`llama.${field}`, u32(2 ** 32 - 1)),
    },
  ]),
  {
    name: 'block_count as text',
    code: 'invalid_file',
    says: ['llama.block_count', '"2"', 'integer'],
    breaks: set('llama.block_count', text('2')),
  },
  {
    name: 'block_count 1.5',
    code: 'invalid_file',
    says: ['llama.block_count', '1.5'],
    breaks: set('llama.block_count', f32(1.5)),
  },
  {
    name: 'block_count beyond 2^53',
    code: 'invalid_file',
    says: ['llama.block_count', '9223372036854775808'],
    breaks: set('llama.block_count', { type: 'u64', value: 2n ** 63n }),
  },
  {
    name: 'a layer too many',
    code: 'invalid_file',
    says: ['layers.2.attention_norm', 'absent'],
    breaks: set('llama.block_count', u32(3)),
  },
  {
    name: 'a layer too few',
    code: 'unsupported_file',
    says: ['blk.1.'],
    breaks: set('llama.block_count', u32(1)),
  },
  {
    name: 'heads that do not divide',
    code: 'invalid_file',
    says: ['llama.attention.head_count', 'is 4', '3'],
    breaks: set('llama.attention.head_count_kv', u32(3)),
  },
  {
    name: 'width that heads do not divide',
    code: 'invalid_file',
    says: ['llama.embedding_length', 'is 8', '3'],
    breaks: set('llama.attention.head_count', u32(3)),
  },
  {
    name: 'heads a layer',
    code: 'unsupported_file',
    says: ['llama.attention.head_count of layer 1', 'is 2', '4, as layer 0'],
    breaks: set('llama.attention.head_count', { type: 'ints', value: [4, 2] }),
  },
  {
    name: 'heads of one layer too few',
    code: 'invalid_file',
    says: ['llama.attention.head_count', '[4]', 'each of 2 layers'],
    breaks: set('llama.attention.head_count', { type: 'ints', value: [4] }),
  },
  {
    name: 'a layer with no heads',
    code: 'invalid_file',
    says: ['llama.attention.head_count_kv', '[0, 0]'],
    breaks: set('llama.attention.head_count_kv', { type: 'ints', value: [0, 0] }),
  },
  {
    name: 'a negative number of files',
    code: 'invalid_file',
    says: ['split.count', 'is -1'],
    breaks: set('split.count', { type: 'i32', value: -1 }),
  },
  {
    name: 'odd head dimension',
    code: 'invalid_file',
    says: ['key_length', 'is 1', 'even'],
    breaks: (model) => {
      model.entries.set('llama.attention.head_count', u32(8));
      model.entries.set('llama.rope.dimension_count', u32(1));
    },
  },
  {
    name: 'epsilon absent',
    code: 'invalid_file',
    says: ['layer_norm_rms_epsilon', 'absent'],
    breaks: without('llama.attention.layer_norm_rms_epsilon'),
  },
  {
    name: 'epsilon negative',
    code: 'invalid_file',
    says: ['layer_norm_rms_epsilon', '-1'],
    breaks: set('llama.attention.layer_norm_rms_epsilon', f32(-1)),
  },
  {
    name: 'theta NaN',
    code: 'invalid_file',
    says: ['llama.rope.freq_base', 'NaN'],
    breaks: set('llama.rope.freq_base', f32(NaN)),
  },
  {
    name: 'linear factor 0',
    code: 'invalid_file',
    says: ['llama.rope.scaling.factor', 'is 0'],
    breaks: set('llama.rope.scaling.factor', f32(0)),
  },
  {
    name: 'sliding window negative',
    code: 'invalid_file',
    says: ['llama.attention.sliding_window', '-1'],
    breaks: set('llama.attention.sliding_window', { type: 'i32', value: -1 }),
  },
];

const tensors: Case[] = [
  {
    name: 'missing tensor',
    code: 'invalid_file',
    says: ['layers.1.o_proj', 'absent', '[8, 8]'],
    breaks: (model) => void model.tensors.delete('blk.1.attn_output.weight'),
  },
  {
    name: 'extra tensor',
    code: 'unsupported_file',
    says: ['"blk.0.ffn_gate_inp.weight"'],
    breaks: extra({ name: 'blk.0.ffn_gate_inp.weight', dims: [8, 4] }),
  },
  {
    name: 'bias of the output projection',
    code: 'unsupported_file',
    says: ['"blk.0.attn_output.bias"'],
    breaks: extra({ name: 'blk.0.attn_output.bias', dims: [8] }),
  },
  {
    name: 'head norm that llama has not',
    code: 'unsupported_file',
    says: ['"blk.0.attn_q_norm.weight"'],
    breaks: extra({ name: 'blk.0.attn_q_norm.weight', dims: [2] }),
  },
  {
    name: 'bias in one layer alone',
    code: 'invalid_file',
    says: ['layers.0.k_bias', 'absent'],
    breaks: extra({ name: 'blk.0.attn_q.bias', dims: [8] }),
  },
  {
    name: 'layer number with a leading zero',
    code: 'unsupported_file',
    says: ['"blk.00.attn_norm.weight"'],
    breaks: extra({ name: 'blk.00.attn_norm.weight', dims: [8] }),
  },
  {
    name: 'wrong shape',
    code: 'invalid_file',
    says: ['shape of blk.0.attn_k.weight', '[8, 8]', '[4, 8]'],
    breaks: tensor('blk.0.attn_k.weight', { dims: [8, 8] }),
  },
  {
    name: 'transposed',
    code: 'invalid_file',
    says: ['shape of blk.1.ffn_up.weight', '[8, 12]', '[12, 8]'],
    breaks: tensor('blk.1.ffn_up.weight', { dims: [12, 8] }),
  },
  {
    name: 'vector as a matrix',
    code: 'invalid_file',
    says: ['shape of output_norm.weight', '[1, 8]', '[8]'],
    breaks: tensor('output_norm.weight', { dims: [8, 1] }),
  },
  {
    name: 'rank 0',
    code: 'invalid_file',
    says: ['n_dims of output_norm.weight', 'is 0'],
    breaks: tensor('output_norm.weight', { dims: [] }),
  },
  {
    name: 'rank 5',
    code: 'invalid_file',
    says: ['n_dims of output_norm.weight', 'is 5'],
    breaks: tensor('output_norm.weight', { dims: [8, 1, 1, 1, 1] }),
  },
  {
    name: 'dimension 0',
    code: 'invalid_file',
    says: ['dimension 1 of output.weight', 'is 0'],
    breaks: tensor('output.weight', { dims: [8, 0], bytes: 192 }),
  },
  {
    name: 'dimension 2^64 - 1',
    code: 'invalid_file',
    says: ['dimension 0 of output.weight', '18446744073709551615'],
    breaks: tensor('output.weight', { dims: [2n ** 64n - 1n, 6], bytes: 192 }),
  },
  {
    name: 'product beyond 2^53',
    code: 'invalid_file',
    says: ['shape of output.weight', '2^53'],
    breaks: tensor('output.weight', { dims: [2 ** 40, 2 ** 40], bytes: 192 }),
  },
  {
    name: 'larger than the file',
    code: 'truncated_file',
    says: ['needed'],
    breaks: tensor('output.weight', { dims: [8, 2 ** 30], bytes: 192 }),
  },
  {
    name: 'unsupported type',
    code: 'unsupported_file',
    says: ['type of token_embd.weight', '"IQ4_NL"', 'Q4_K'],
    breaks: tensor('token_embd.weight', { type: 20 }),
  },
  {
    name: 'unknown type',
    code: 'unsupported_file',
    says: ['type of token_embd.weight', 'type 1000'],
    breaks: tensor('token_embd.weight', { type: 1000 }),
  },
  {
    name: 'integers',
    code: 'unsupported_file',
    says: ['type of token_embd.weight', '"I32"'],
    breaks: tensor('token_embd.weight', { type: 26 }),
  },
  {
    name: 'row of broken blocks',
    code: 'invalid_file',
    says: ['row length of token_embd.weight', 'is 8', '32'],
    breaks: tensor('token_embd.weight', { type: 2 }),
  },
  {
    name: 'misaligned offset',
    code: 'invalid_file',
    says: ['offset of output.weight', 'multiple of the alignment 32'],
    breaks: tensor('output.weight', { offset: 4 }),
  },
  {
    name: 'offset beyond the file',
    code: 'truncated_file',
    says: ['needed'],
    breaks: tensor('output.weight', { offset: 2 ** 40 }),
  },
  {
    name: 'offset beyond 2^53',
    code: 'invalid_file',
    says: ['offset of output.weight', '9223372036854775808'],
    breaks: tensor('output.weight', { offset: 2n ** 63n }),
  },
  {
    name: 'overlap',
    code: 'invalid_file',
    says: ['offset of', 'where token_embd.weight ends'],
    breaks: tensor('output.weight', { offset: 32 }),
  },
  {
    name: 'name twice',
    code: 'invalid_file',
    says: ['tensor name', '"output_norm.weight"', 'unique'],
    breaks: (model) => ({
      tensors: [...model.tensors.values(), { name: 'output_norm.weight', dims: [8] }],
    }),
  },
  {
    name: 'rope_freqs of another length',
    code: 'invalid_file',
    says: ['shape of rope_freqs.weight', '[2]', '[1]'],
    breaks: extra({ name: 'rope_freqs.weight', dims: [2] }),
  },
  {
    name: 'rope_freqs of zeros',
    code: 'invalid_file',
    says: ['value 0 of rope_freqs.weight', 'is 0'],
    breaks: extra({ name: 'rope_freqs.weight', dims: [1] }),
  },
  {
    name: 'rope_freqs in half precision',
    code: 'unsupported_file',
    says: ['type of rope_freqs.weight', 'f16'],
    breaks: extra({ name: 'rope_freqs.weight', dims: [1], type: 1 }),
  },
];

const tokenizer: Case[] = [
  {
    name: 'no tokens',
    code: 'invalid_file',
    says: ['tokenizer.ggml.tokens', 'absent'],
    breaks: without('tokenizer.ggml.tokens'),
  },
  {
    name: 'tokens that are numbers',
    code: 'invalid_file',
    says: ['tokenizer.ggml.tokens', 'strings'],
    breaks: set('tokenizer.ggml.tokens', { type: 'ints', value: [1, 2] }),
  },
  {
    name: 'a token twice',
    code: 'invalid_file',
    says: ['tokenizer.ggml.tokens', '"a"', 'unique'],
    breaks: set('tokenizer.ggml.tokens', {
      type: 'strings',
      value: ['<unk>', '<s>', '</s>', 'a', 'b', 'a'],
    }),
  },
  // In time that grows with the file, not with its square.
  {
    name: 'the last of 200,000 tokens twice',
    code: 'invalid_file',
    says: ['"t199999"', 'unique'],
    breaks: set('tokenizer.ggml.tokens', {
      type: 'strings',
      value: [...Array.from({ length: 200_000 }, (_, i) => `t${i}`), 't199999'],
    }),
  },
  {
    name: 'no scores',
    code: 'invalid_file',
    says: ['tokenizer.ggml.scores', 'absent'],
    breaks: without('tokenizer.ggml.scores'),
  },
  {
    name: 'a score too few',
    code: 'invalid_file',
    says: ['length of tokenizer.ggml.scores', 'is 5', '6'],
    breaks: set('tokenizer.ggml.scores', { type: 'floats', value: [0, 0, 0, 0, 0] }),
  },
  {
    name: 'a type too many',
    code: 'invalid_file',
    says: ['length of tokenizer.ggml.token_type', 'is 7'],
    breaks: set('tokenizer.ggml.token_type', { type: 'ints', value: [1, 1, 1, 1, 1, 1, 1] }),
  },
  {
    name: 'BPE without merges',
    code: 'invalid_file',
    says: ['tokenizer.ggml.merges', 'absent'],
    breaks: (model) => {
      model.entries.set('tokenizer.ggml.model', text('gpt2'));
      model.entries.set('tokenizer.ggml.pre', text('gpt-2'));
    },
  },
  {
    name: 'chat template as a number',
    code: 'invalid_file',
    says: ['tokenizer.chat_template', 'is 1', 'string'],
    breaks: set('tokenizer.chat_template', u32(1)),
  },
];

const groups = { header, metadata, architecture, shape, tensors, tokenizer };

function build({ breaks, cut = 0, keep }: Case): Uint8Array {
  const model = smallGguf();
  const faults = breaks(model) ?? {};
  const whole = { entries: [...model.entries], tensors: [...model.tensors.values()] };
  const bytes = writeGguf({ ...whole, ...faults });
  return bytes.subarray(0, keep ?? bytes.length - cut);
}

test('the model that the cases break is whole', async () => {
  const whole: Case = { name: '', code: 'invalid_file', says: [], breaks: () => {} };
  const checkpoint = await openCheckpoint({ 'model.gguf': build(whole) });
  expect(checkpoint.tensors).toHaveLength(21);
});

for (const [group, cases] of Object.entries(groups)) {
  describe(`a GGUF file with a broken ${group} is refused`, () => {
    test.each(cases)('$name', async (broken) => {
      const error: unknown = await openCheckpoint({ 'model.gguf': build(broken) }).catch(
        (reason: unknown) => reason,
      );
      if (!isKvLensError(error)) throw error;
      expect(error.code).toBe(broken.code);
      for (const part of ['model.gguf', ...broken.says]) expect(error.message).toContain(part);
      expect(error.message).not.toContain('\n');
      if (error.code === 'invalid_file' || error.code === 'unsupported_file') {
        expect(error.message).toContain(error.context.field);
        expect(error.message).toContain(error.context.value);
        expect(error.message).toContain(error.context.allowed);
      }
    });
  });
}
