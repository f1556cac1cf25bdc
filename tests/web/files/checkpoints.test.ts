import { describe, expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { parameterSpecs, type Checkpoint } from '../../../web/src/files/checkpoint.js';
import { dtypes } from '../../../web/src/files/dtypes.js';
import { openCheckpoint, type FileData } from '../../../web/src/files/open-checkpoint.js';
import { fixtureBytes } from '../../support/fixtures.js';
import { smallGguf, writeGguf } from '../../support/gguf-writer.js';
import {
  smallHf,
  writeJson,
  writeSafetensors,
  type SafetensorsTable,
} from '../../support/hf-writer.js';
import { origin, serve } from '../../support/http.js';

async function hf(name: string): Promise<Checkpoint> {
  const files: Record<string, FileData> = {};
  for (const file of ['config.json', 'model.safetensors']) {
    files[file] = await fixtureBytes(`hf/${name}/${file}`);
  }
  return openCheckpoint(files);
}

const gguf = async (path: string) => openCheckpoint({ 'model.gguf': await fixtureBytes(path) });

/**
 * Everything of a checkpoint that both twins must agree on; q and k rows are permuted, not resized.
 */
const shapeOf = ({ config, tensors }: Checkpoint) => ({
  ...config,
  rope: undefined,
  rmsNormEps: Math.fround(config.rmsNormEps),
  tensors: tensors.map(({ name, rows, cols }) => ({ name, rows, cols })),
});

describe('Hugging Face folders', () => {
  test.each([
    [
      'llama-mha-tied',
      'llama',
      { nHeads: 4, nKvHeads: 4, headDim: 8, tiedEmbedding: true, maxSeqLen: 64 },
    ],
    ['llama-gqa-untied', 'llama', { nHeads: 4, nKvHeads: 2, tiedEmbedding: false }],
    ['llama3-rope-scaled', 'llama', { nHeads: 4, nKvHeads: 1, maxSeqLen: 256 }],
    ['mistral-sliding', 'mistral', { slidingWindow: 5, tiedEmbedding: false }],
    ['qwen2-bias', 'qwen2', { qkvBias: true, qkNorm: false, slidingWindow: 0 }],
    ['qwen3-qknorm', 'qwen3', { qkvBias: false, qkNorm: true, headDim: 16, dModel: 32 }],
  ])('%s in f32 and bf16', async (name, architecture, expected) => {
    for (const dtype of ['f32', 'bf16']) {
      const checkpoint = await hf(`${name}-${dtype}`);
      expect(checkpoint.config).toMatchObject({
        nLayers: 2,
        dFf: 48,
        vocabSize: 96,
        rmsNormEps: 1e-5,
        ...expected,
      });
      expect(checkpoint.config.rope.pairing).toBe('half_split');
      expect(new Set(checkpoint.tensors.map((tensor) => tensor.dtype))).toEqual(new Set([dtype]));
      expect(checkpoint.tensors.map((tensor) => tensor.name)).toEqual(
        parameterSpecs(checkpoint.config).map((spec) => spec.name),
      );
      expect(checkpoint.architecture).toBe(architecture);
    }
  });

  test('rope_theta and its old and new places', async () => {
    const open = async (change: Record<string, unknown>) => {
      const { config, tensors } = smallHf();
      Object.assign(config, change);
      return (
        await openCheckpoint({
          'config.json': writeJson(config),
          'model.safetensors': writeSafetensors(tensors),
        })
      ).config.rope;
    };
    expect(await open({ rope_theta: undefined })).toEqual({
      pairing: 'half_split',
      theta: 10000,
      freqFactors: [],
    });
    expect((await open({ rope_theta: 5e5 })).theta).toBe(5e5);
    expect((await open({ rope_parameters: { rope_type: 'default', rope_theta: 7e5 } })).theta).toBe(
      7e5,
    );
    expect((await open({ rope_scaling: null })).freqFactors).toEqual([]);
    expect((await open({ rope_scaling: { type: 'linear', factor: 4 } })).freqFactors).toEqual([4]);
    expect(
      (await open({ rope_parameters: { rope_type: 'linear', factor: 2 } })).freqFactors,
    ).toEqual([2]);
  });

  test('a window counts only where the family uses it', async () => {
    const window = async (change: Record<string, unknown>) => {
      const { config, tensors } = smallHf();
      const biases: Record<string, { shape: number[] }> = {};
      for (const layer of [0, 1]) {
        for (const [letter, width] of [
          ['q', 8],
          ['k', 4],
          ['v', 4],
        ] as const) {
          biases[`model.layers.${layer}.self_attn.${letter}_proj.bias`] = { shape: [width] };
        }
      }
      const table = change['model_type'] === 'qwen2' ? { ...tensors, ...biases } : tensors;
      return (
        await openCheckpoint({
          'config.json': writeJson({ ...config, ...change }),
          'model.safetensors': writeSafetensors(table),
        })
      ).config.slidingWindow;
    };
    expect(await window({ model_type: 'mistral', sliding_window: 7 })).toBe(7);
    expect(await window({ model_type: 'mistral', sliding_window: null })).toBe(0);
    expect(await window({ model_type: 'mistral' })).toBe(4096);
    expect(await window({ model_type: 'qwen2', sliding_window: 7 })).toBe(0);
    const used = { model_type: 'qwen2', sliding_window: 7, use_sliding_window: true };
    expect(await window({ ...used, max_window_layers: 0 })).toBe(7);
    expect(await window({ ...used, max_window_layers: 28 })).toBe(0);
    expect(await window({ ...used, layer_types: ['sliding_attention', 'sliding_attention'] })).toBe(
      7,
    );
  });

  test('shards give what one file gives', async () => {
    const { config, tensors } = smallHf();
    const shards: Record<string, SafetensorsTable> = { 'a.safetensors': {}, 'b.safetensors': {} };
    const weightMap: Record<string, string> = {};
    Object.entries(tensors).forEach(([name, entry], i) => {
      const shard = i % 3 === 0 ? 'a.safetensors' : 'b.safetensors';
      shards[shard] = { ...shards[shard], [name]: entry };
      weightMap[name] = shard;
    });
    const files: Record<string, FileData> = {
      'config.json': writeJson(config),
      'model.safetensors.index.json': writeJson({ metadata: {}, weight_map: weightMap }),
    };
    for (const [name, table] of Object.entries(shards)) files[name] = writeSafetensors(table);
    const sharded = await openCheckpoint(files);
    const single = await openCheckpoint({
      'config.json': writeJson(config),
      'model.safetensors': writeSafetensors(tensors),
    });
    expect(shapeOf(sharded)).toEqual(shapeOf(single));
    expect(sharded.totalBytes).toBe(single.totalBytes);
  });

  test('stop ids, chat template and tokenizer are taken from beside the weights', async () => {
    const { config, tensors } = smallHf();
    const tokenizer = { model: { type: 'BPE' } };
    const files = {
      'config.json': writeJson(config),
      'model.safetensors': writeSafetensors(tensors),
      'tokenizer.json': writeJson(tokenizer),
      'tokenizer_config.json': writeJson({
        chat_template: [
          { name: 'tool', template: 'T' },
          { name: 'default', template: 'D' },
        ],
      }),
      'generation_config.json': writeJson({ eos_token_id: [5, 2] }),
    };
    const checkpoint = await openCheckpoint(files);
    expect(checkpoint.tokenizer).toMatchObject({
      kind: 'tokenizer.json',
      json: tokenizer,
      stopIds: [2, 5],
    });
    expect(checkpoint.chatTemplate).toBe('D');
    const newer = await openCheckpoint({ ...files, 'chat_template.jinja': writeJson('J') });
    expect(newer.chatTemplate).toBe('J');
  });
});

describe('GGUF files', () => {
  test.each(['llama-gqa-untied', 'llama3-rope-scaled', 'qwen2-bias', 'qwen3-qknorm'])(
    '%s describes the same model as its Hugging Face twin',
    async (name) => {
      const twin = await hf(`${name}-f32`);
      const checkpoint = await gguf(`hf/${name}-f32/model-f32.gguf`);
      expect(shapeOf(checkpoint)).toEqual({ ...shapeOf(twin) });
      expect(checkpoint.config.rope.theta).toBe(twin.config.rope.theta);
      expect(checkpoint.config.rope.pairing).toBe(
        name.startsWith('llama') ? 'interleaved' : 'half_split',
      );
    },
  );

  test('rope_freqs.weight holds the factors that config.json computes', async () => {
    const fromFile = (await gguf('hf/llama3-rope-scaled-f32/model-f32.gguf')).config.rope
      .freqFactors;
    const computed = (await hf('llama3-rope-scaled-f32')).config.rope.freqFactors;
    expect(fromFile).toHaveLength(4);
    fromFile.forEach((factor, i) => expect(factor).toBeCloseTo(computed[i] as number, 5));
    expect(fromFile).not.toEqual([1, 1, 1, 1]);
  });

  test.each(['Q2_K', 'Q3_K_M', 'Q4_0', 'Q4_1', 'Q4_K_M', 'Q5_0', 'Q5_1', 'Q5_K_M', 'Q6_K'])(
    'quant256-%s keeps every tensor in its own type',
    async (type) => {
      const checkpoint = await gguf(`quant/quant256-${type}.gguf`);
      expect(checkpoint.config).toMatchObject({ dModel: 256, nLayers: 2, tiedEmbedding: false });
      const types = new Set(checkpoint.tensors.map((tensor) => tensor.dtype));
      expect(types).toContain(type.toLowerCase().replace(/_[ms]$/, ''));
      for (const { dtype, rows, cols, byteLength } of checkpoint.tensors) {
        const { blockValues, blockBytes } = dtypes[dtype];
        expect(byteLength).toBe(((rows * cols) / blockValues) * blockBytes);
      }
      const sum = checkpoint.tensors.reduce((total, tensor) => total + tensor.byteLength, 0);
      expect(checkpoint.totalBytes).toBe(sum);
    },
  );

  test.each([
    ['stories260K-f32.gguf', true, '3'],
    ['stories260K-q8_0.gguf', true, '3'],
    ['tinyllamas-stories-260k-f32.ggufv1.gguf', false, '1'],
  ])('%s', async (file, tied, version) => {
    const checkpoint = await gguf(`stories260k/${file}`);
    expect(checkpoint.config).toEqual({
      nLayers: 5,
      nHeads: 8,
      nKvHeads: 4,
      headDim: 8,
      dModel: 64,
      dFf: 172,
      vocabSize: 512,
      maxSeqLen: 512,
      rmsNormEps: Math.fround(1e-5),
      slidingWindow: 0,
      rope: { pairing: 'interleaved', theta: 10000, freqFactors: [] },
      qkvBias: false,
      qkNorm: false,
      tiedEmbedding: tied,
    });
    expect(checkpoint.metadata.get('gguf.version')).toBe(version);
  });

  test('optional keys: window, linear scaling by its new and old key, biases of llama', async () => {
    const rope = async (change: (model: ReturnType<typeof smallGguf>) => void) => {
      const model = smallGguf();
      change(model);
      const bytes = writeGguf({
        entries: [...model.entries],
        tensors: [...model.tensors.values()],
      });
      return (await openCheckpoint({ 'model.gguf': bytes })).config;
    };
    const window = await rope(({ entries }) =>
      entries.set('llama.attention.sliding_window', { type: 'u32', value: 5 }),
    );
    expect(window.slidingWindow).toBe(5);
    const linear = await rope(({ entries }) =>
      entries.set('llama.rope.scaling.factor', { type: 'f32', value: 4 }),
    );
    expect(linear.rope.freqFactors).toEqual([4]);
    const old = await rope(({ entries }) =>
      entries.set('llama.rope.scale_linear', { type: 'f32', value: 2 }),
    );
    expect(old.rope.freqFactors).toEqual([2]);
    const none = await rope(({ entries }) => {
      entries.set('llama.rope.scaling.type', { type: 'string', value: 'none' });
      entries.set('llama.rope.scaling.factor', { type: 'f32', value: 4 });
    });
    expect(none.rope.freqFactors).toEqual([]);
    const biased = await rope(({ tensors }) => {
      for (const layer of [0, 1]) {
        for (const [letter, width] of [
          ['q', 8],
          ['k', 4],
          ['v', 4],
        ] as const) {
          const name = `blk.${layer}.attn_${letter}.bias`;
          tensors.set(name, { name, dims: [width] });
        }
      }
    });
    expect(biased.qkvBias).toBe(true);
  });

  test('versions 1, 2 and 3 of the same content are the same checkpoint', async () => {
    const model = smallGguf();
    const content = { entries: [...model.entries], tensors: [...model.tensors.values()] };
    const read = async (version: number) => {
      const checkpoint = await openCheckpoint({ 'm.gguf': writeGguf({ ...content, version }) });
      return shapeOf(checkpoint);
    };
    const three = await read(3);
    expect(await read(2)).toEqual(three);
    expect(await read(1)).toEqual(three);
  });

  test('a file alone is known by its content, whatever its name is', async () => {
    const bytes = await fixtureBytes('stories260k/stories260K-q8_0.gguf');
    for (const name of ['MODEL.GGUF', 'sha256-5ee4f07c', 'weights.data']) {
      expect((await openCheckpoint([new File([bytes], name)])).format).toBe('gguf');
    }
  });

  test('a header longer than one window is read to its end', async () => {
    const model = smallGguf();
    model.entries.set('general.description', { type: 'string', value: 'x'.repeat(9 << 20) });
    const bytes = writeGguf({ entries: [...model.entries], tensors: [...model.tensors.values()] });
    expect((await openCheckpoint({ 'm.gguf': bytes })).tensors).toHaveLength(21);
  });

  test('a file without a tokenizer, and one whose tokenizer is "none"', async () => {
    for (const kind of [undefined, 'none']) {
      const model = smallGguf();
      for (const key of [...model.entries.keys()])
        if (key.startsWith('tokenizer.')) model.entries.delete(key);
      if (kind !== undefined)
        model.entries.set('tokenizer.ggml.model', { type: 'string', value: kind });
      const bytes = writeGguf({
        entries: [...model.entries],
        tensors: [...model.tensors.values()],
      });
      expect((await openCheckpoint(bytes)).tokenizer).toBeUndefined();
    }
  });
});

describe('split GGUF files', () => {
  const u32 = (value: number) => ({ type: 'u32', value }) as const;
  /** The small model in two files, `change` made to the second one's metadata. */
  function split(
    change: Record<string, number> = {},
    total = 21,
    name = 'm',
  ): Record<string, FileData> {
    const model = smallGguf();
    const all = [...model.tensors.values()];
    const part = (no: number) =>
      [
        ['split.no', u32(no)],
        ['split.count', u32(2)],
        ['split.tensors.count', u32(total)],
      ] as const;
    const second = part(1).map(([key, entry]) => [key, u32(change[key] ?? entry.value)] as const);
    return {
      [`${name}-00001-of-00002.gguf`]: writeGguf({
        entries: [...model.entries, ...part(0)],
        tensors: all.slice(0, 9),
      }),
      [`${name}-00002-of-00002.gguf`]: writeGguf({ entries: second, tensors: all.slice(9) }),
    };
  }
  const refusal = async (files: Record<string, FileData>) => {
    const error: unknown = await openCheckpoint(files).catch((reason: unknown) => reason);
    if (!isKvLensError(error)) throw error;
    return error.message;
  };

  test('give one checkpoint whose tensors lie in both', async () => {
    const files = split();
    const checkpoint = await openCheckpoint(files);
    expect(new Set(checkpoint.tensors.map((tensor) => tensor.source.name))).toEqual(
      new Set(Object.keys(files)),
    );
  });
  test.each(['100 % real', 'a#b?c', 'v1.0%20', 'a b'])(
    'find one another by any name: %s',
    async (name) => {
      expect((await openCheckpoint(split({}, 21, name))).tensors).toHaveLength(21);
      const resources = Object.entries(split({}, 21, name)).map(
        ([file, bytes]) =>
          [`/m/${encodeURIComponent(file)}`, { bytes: bytes as Uint8Array<ArrayBuffer> }] as const,
      );
      const { fetch } = serve(Object.fromEntries(resources));
      const address = `${origin}${resources[0]![0]}?key=1`;
      expect((await openCheckpoint(address, { fetch })).tensors).toHaveLength(21);
    },
  );
  test('are refused when a part is missing, wrong, renamed or repeated', async () => {
    const [first, second] = Object.values(split());
    expect(await refusal({ 'm-00001-of-00002.gguf': first as FileData })).toContain(
      'has no m-00002-of-00002.gguf',
    );
    expect(await refusal(split({ 'split.no': 0 }))).toContain('split.no is 0, must be 1');
    expect(await refusal(split({ 'split.count': 3 }))).toContain('split.count is 3, must be 2');
    expect(await refusal(split({}, 20))).toContain('split.tensors.count is 20, must be 21');
    expect(await refusal({ 'm.gguf': first as FileData })).toContain('file name is "m.gguf"');
    expect(await refusal({ 'm.gguf': second as FileData })).toContain('split.no is 1, must be 0');
  });
});

describe('llama2.c files', () => {
  test('stories260K is the model of its GGUF', async () => {
    const checkpoint = await openCheckpoint({
      'stories260K.bin': await fixtureBytes('stories260k/stories260K.bin'),
      'tok512.bin': await fixtureBytes('stories260k/tok512.bin'),
    });
    expect(shapeOf(checkpoint)).toEqual(shapeOf(await gguf('stories260k/stories260K-f32.gguf')));
    const other = await gguf('stories260k/stories260K-f32.gguf');
    // The same weights in both, so the same bytes wherever they lie.
    for (const [i, tensor] of checkpoint.tensors.entries()) {
      const twin = other.tensors[i];
      if (twin === undefined) throw new Error('a tensor less');
      const [a, b] = await Promise.all(
        [tensor, twin].map((t) => t.source.read(t.byteOffset, t.byteLength)),
      );
      expect(a, tensor.name).toEqual(b);
    }
  });

  test('without tokenizer.bin there is no tokenizer', async () => {
    const bytes = await fixtureBytes('stories260k/stories260K.bin');
    expect((await openCheckpoint({ 'stories260K.bin': bytes })).tokenizer).toBeUndefined();
  });
});
