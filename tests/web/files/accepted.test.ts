// Files that other loaders accept although something in them is out of the ordinary: they load as
// their references load them, and say in `warnings` what was set aside.
import { describe, expect, test } from 'vitest';
import type { Checkpoint } from '../../../web/src/files/checkpoint.js';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import type { BpeData } from '../../../web/src/text/tokenizer-data.js';
import { smallGguf, writeGguf, type GgufEntry } from '../../support/gguf-writer.js';
import { smallHf, writeJson, writeSafetensors } from '../../support/hf-writer.js';

const u32 = (value: number): GgufEntry => ({ type: 'u32', value });
const text = (value: string): GgufEntry => ({ type: 'string', value });

function gguf(entries: Readonly<Record<string, GgufEntry | undefined>>): Promise<Checkpoint> {
  const model = smallGguf();
  for (const [key, entry] of Object.entries(entries)) {
    if (entry === undefined) model.entries.delete(key);
    else model.entries.set(key, entry);
  }
  const bytes = writeGguf({ entries: [...model.entries], tensors: [...model.tensors.values()] });
  return openCheckpoint({ 'model.gguf': bytes });
}

function hf(
  change: (model: ReturnType<typeof smallHf>) => void,
  files: Readonly<Record<string, unknown>> = {},
): Promise<Checkpoint> {
  const model = smallHf();
  change(model);
  const others = Object.entries(files).map(([name, value]) => [name, writeJson(value)]);
  return openCheckpoint({
    'config.json': writeJson(model.config),
    'model.safetensors': writeSafetensors(model.tensors),
    ...(Object.fromEntries(others) as Record<string, Uint8Array<ArrayBuffer>>),
  });
}

const fields = (checkpoint: Checkpoint) => checkpoint.warnings.map(({ field }) => field);

describe('a GGUF file', () => {
  test('is one file when split.count is 0 or 1', async () => {
    for (const count of [0, 1]) {
      expect((await gguf({ 'split.count': u32(count) })).tensors).toHaveLength(21);
    }
  });

  test.each(['bos', 'eos', 'eot', 'eom', 'unknown'])(
    'has a warning for a %s id outside its vocabulary',
    async (name) => {
      const key = `tokenizer.ggml.${name}_token_id`;
      for (const entry of [u32(6), u32(0xffffffff), { type: 'i32', value: -1 } as const]) {
        const checkpoint = await gguf({ [key]: entry });
        expect(fields(checkpoint)).toEqual([key]);
        expect(checkpoint.warnings[0]!.message).toContain('outside the vocabulary of 6');
        expect(checkpoint.tokenizer).toMatchObject({ bosId: 1, eosId: 2, unknownId: 0 });
      }
    },
  );

  test('may list a number for each layer if all are equal', async () => {
    const { config } = await gguf({
      'llama.attention.head_count': { type: 'ints', value: [4, 4] },
      'llama.attention.head_count_kv': { type: 'ints', value: [2, 2] },
      'llama.feed_forward_length': { type: 'ints', value: [12, 12] },
    });
    expect(config).toMatchObject({ nHeads: 4, nKvHeads: 2, dFf: 12 });
  });

  test('may hold keys of embedding models', async () => {
    const labels: GgufEntry = { type: 'strings', value: ['yes', 'no'] };
    const keys = { 'llama.pooling_type': u32(3), 'llama.classifier.output_labels': labels };
    expect((await gguf(keys)).warnings).toEqual([]);
  });

  test('has as many ids as tokens, whatever vocab_size says', async () => {
    const checkpoint = await gguf({ 'llama.vocab_size': u32(7) });
    expect(checkpoint.config.vocabSize).toBe(6);
    expect(fields(checkpoint)).toEqual(['llama.vocab_size']);
  });

  test.each([
    ['another kind of tokenizer', { 'tokenizer.ggml.model': text('t5') }, '"t5"'],
    ['no pre-tokenizer', { 'tokenizer.ggml.model': text('gpt2') }, 'tokenizer.ggml.pre is absent'],
    [
      'an unknown pre-tokenizer',
      { 'tokenizer.ggml.model': text('gpt2'), 'tokenizer.ggml.pre': text('nonsense') },
      '"nonsense"',
    ],
  ])('with %s keeps its weights', async (_, entries, says) => {
    const checkpoint = await gguf(entries);
    expect(checkpoint.tokenizer).toBeUndefined();
    expect(checkpoint.tokenizerProblem?.code).toBe('unsupported_file');
    expect(checkpoint.tokenizerProblem?.message).toContain(says);
    expect(fields(checkpoint)).toEqual(['tokenizer']);
    expect(checkpoint.config.vocabSize).toBe(6);
  });

  test('finds end tokens by name, whatever their type', async () => {
    for (const name of ['<|im_end|>', '<end_of_turn>', '</s>', '<|file_sep|>', '<eos>']) {
      for (const type of [1, 3, 4]) {
        const { tokenizer } = await gguf({
          'tokenizer.ggml.tokens': {
            type: 'strings',
            value: ['<unk>', '<s>', 'e', 'a', 'b', name],
          },
          'tokenizer.ggml.token_type': { type: 'ints', value: [2, 3, 1, 1, 1, type] },
        });
        expect(tokenizer?.stopIds, `${name} ${type}`).toContain(5);
        expect((tokenizer as BpeData).types[5]).toBe(3);
      }
    }
  });

  test('keeps an ordinary </s> of a byte-level vocabulary as text', async () => {
    for (const [type, stops] of [
      [1, false],
      [3, true],
      [4, true],
    ] as const) {
      const { tokenizer } = await gguf({
        'tokenizer.ggml.model': text('gpt2'),
        'tokenizer.ggml.pre': text('qwen2'),
        'tokenizer.ggml.merges': { type: 'strings', value: [] },
        'tokenizer.ggml.tokens': { type: 'strings', value: ['x', 'y', 'e', 'a', 'b', '</s>'] },
        'tokenizer.ggml.token_type': { type: 'ints', value: [1, 3, 3, 1, 1, type] },
      });
      expect(tokenizer?.stopIds.includes(5), `type ${type}`).toBe(stops);
    }
  });
});

describe('a Hugging Face folder', () => {
  test('has warnings for end tokens outside its vocabulary', async () => {
    for (const id of [6, -1, [2, 6]]) {
      const checkpoint = await hf(({ config }) => void (config['eos_token_id'] = id));
      expect(fields(checkpoint)).toEqual(['eos_token_id']);
    }
    const generation = { 'generation_config.json': { eos_token_id: 99 } };
    expect((await hf(() => undefined, generation)).warnings[0]!.file).toContain('generation');
  });

  test('may lack rms_norm_eps, which is 1e-6 by default', async () => {
    const { config } = await hf((model) => void delete model.config['rms_norm_eps']);
    expect(config.rmsNormEps).toBe(1e-6);
  });

  test('may hold buffers of old exports, of any type', async () => {
    const { tensors } = await hf((model) => {
      model.tensors['model.layers.0.self_attn.rotary_emb.inv_freq'] = { shape: [1] };
      model.tensors['model.rotary_emb.inv_freq'] = { shape: [1], dtype: 'BF16', bytes: 2 };
      model.tensors['model.layers.1.self_attn.masked_bias'] = { shape: [] };
      model.tensors['model.embeddings.position_ids'] = { shape: [1, 4], dtype: 'I64', bytes: 32 };
    });
    expect(tensors).toHaveLength(21);
  });

  test('may have names without the prefix of the base model', async () => {
    const { tensors } = await hf((model) => {
      for (const [name, entry] of Object.entries(model.tensors)) {
        delete model.tensors[name];
        model.tensors[name.replace(/^model\./, '')] = entry;
      }
    });
    expect(tensors).toHaveLength(21);
  });

  const bytes = (value: number) => new Uint8Array(6 * 8 * 4).fill(value);
  test('leaves out a head that equals the tied embedding', async () => {
    const { config, tensors, warnings } = await hf((model) => {
      model.config['tie_word_embeddings'] = true;
      model.tensors['model.embed_tokens.weight'] = { shape: [6, 8], data: bytes(1) };
      model.tensors['lm_head.weight'] = { shape: [6, 8], data: bytes(1) };
    });
    expect([config.tiedEmbedding, tensors.length, warnings.length]).toEqual([true, 20, 0]);
  });

  test('keeps a head that differs from the tied embedding, with a warning', async () => {
    const { config, tensors, warnings } = await hf((model) => {
      model.config['tie_word_embeddings'] = true;
      model.tensors['model.embed_tokens.weight'] = { shape: [6, 8], data: bytes(1) };
      model.tensors['lm_head.weight'] = { shape: [6, 8], data: bytes(2) };
    });
    expect([config.tiedEmbedding, tensors.length, warnings.length]).toEqual([false, 21, 1]);
    expect(warnings[0]!.message).toContain('differs from the embedding');
  });

  test('takes a tied embedding from the head if only the head is stored', async () => {
    const { config, tensors } = await hf((model) => {
      model.config['tie_word_embeddings'] = true;
      delete model.tensors['model.embed_tokens.weight'];
    });
    expect([config.tiedEmbedding, tensors.length]).toEqual([true, 20]);
    expect(tensors[0]!.name).toBe('token_embedding');
  });
});
