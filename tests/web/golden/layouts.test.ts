// The same weights in layouts that the fixtures do not have: Mistral as GGUF, double precision,
// files in parts.
import { beforeAll, describe, expect, test } from 'vitest';
import type { Core } from 'kvlens/core';
import type { Checkpoint, CheckpointTensor } from '../../../web/src/files/checkpoint.js';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import { fixtureFiles, modelFromFiles } from '../../support/checkpoint-model.js';
import { fixtureBytes, fixtureJson } from '../../support/fixtures.js';
import { checkHfCase, type HfGolden } from '../../support/golden-cases.js';
import { writeGguf, type GgufEntry, type GgufTensorEntry } from '../../support/gguf-writer.js';
import { writeJson, writeSafetensors, type SafetensorsEntry } from '../../support/hf-writer.js';
import { sharedCore } from '../../support/kvlens.js';

const folder = 'hf/mistral-sliding-f32';

let core: Core;
let golden: HfGolden;
let checkpoint: Checkpoint;
beforeAll(async () => {
  core = await sharedCore();
  golden = await fixtureJson(`${folder}/golden.json`);
  checkpoint = await openCheckpoint(
    await fixtureFiles(`${folder}/config.json`, `${folder}/model.safetensors`),
  );
});

const float64 = (bytes: Uint8Array): Uint8Array =>
  new Uint8Array(Float64Array.from(new Float32Array(bytes.slice().buffer)).buffer);

async function bytesOf(
  { source, byteOffset, byteLength }: CheckpointTensor,
  dtype: 'f32' | 'f64',
): Promise<Uint8Array> {
  const bytes = await source.read(byteOffset, byteLength);
  return dtype === 'f64' ? float64(bytes) : bytes;
}

/**
 * As converters to GGUF order the rows of q and k in models of llama's kind: row i of a half beside
 * row i of the other.
 */
function interleaved(bytes: Uint8Array, rows: number, headDim: number): Uint8Array {
  const rowBytes = bytes.length / rows;
  const out = new Uint8Array(bytes.length);
  for (let row = 0; row < rows; ++row) {
    const inHead = row % headDim;
    const half = headDim / 2;
    const target = row - inHead + 2 * (inHead % half) + Math.floor(inHead / half);
    out.set(bytes.subarray(row * rowBytes, (row + 1) * rowBytes), target * rowBytes);
  }
  return out;
}

const ggufNames: Record<string, string> = {
  token_embedding: 'token_embd',
  final_norm: 'output_norm',
  lm_head: 'output',
  attention_norm: 'attn_norm',
  q_proj: 'attn_q',
  k_proj: 'attn_k',
  v_proj: 'attn_v',
  o_proj: 'attn_output',
  gate_proj: 'ffn_gate',
  up_proj: 'ffn_up',
  down_proj: 'ffn_down',
};

async function ggufTensors(dtype: 'f32' | 'f64'): Promise<GgufTensorEntry[]> {
  const { headDim } = checkpoint.config;
  return Promise.all(
    checkpoint.tensors.map(async (tensor) => {
      const [, layer, kind] = /^(?:layers\.(\d+)\.)?(.*)$/.exec(tensor.name)!;
      const bytes = await bytesOf(tensor, dtype);
      return {
        name: `${layer === undefined ? '' : `blk.${layer}.`}${ggufNames[kind!] ?? kind}.weight`,
        dims: tensor.rows === 1 ? [tensor.cols] : [tensor.cols, tensor.rows],
        type: dtype === 'f64' ? 28 : 0,
        data:
          kind === 'q_proj' || kind === 'k_proj' ? interleaved(bytes, tensor.rows, headDim) : bytes,
      };
    }),
  );
}

function ggufEntries(): [string, GgufEntry][] {
  const { config } = checkpoint;
  const u32 = (value: number): GgufEntry => ({ type: 'u32', value });
  const f32 = (value: number): GgufEntry => ({ type: 'f32', value });
  return [
    ['general.architecture', { type: 'string', value: 'llama' }],
    ['llama.block_count', u32(config.nLayers)],
    ['llama.context_length', u32(config.maxSeqLen)],
    ['llama.embedding_length', u32(config.dModel)],
    ['llama.feed_forward_length', u32(config.dFf)],
    ['llama.attention.head_count', u32(config.nHeads)],
    ['llama.attention.head_count_kv', u32(config.nKvHeads)],
    ['llama.attention.key_length', u32(config.headDim)],
    ['llama.attention.sliding_window', u32(config.slidingWindow)],
    ['llama.attention.layer_norm_rms_epsilon', f32(config.rmsNormEps)],
    ['llama.rope.freq_base', f32(config.rope.theta)],
    ['llama.vocab_size', u32(config.vocabSize)],
  ];
}

/** Every second tensor in a file of its own. */
const halves = <T>(all: readonly T[]): [T[], T[]] => [
  all.filter((_, i) => i % 2 === 0),
  all.filter((_, i) => i % 2 === 1),
];

describe.each(['f32', 'f64'] as const)('mistral-sliding in %s', (dtype) => {
  test('as GGUF: logits, attention within the window, greedy ids', async () => {
    const file = writeGguf({ entries: ggufEntries(), tensors: await ggufTensors(dtype) });
    expect((await openCheckpoint(file)).config.slidingWindow).toBe(5);
    await checkHfCase(core, file, golden);
  });

  test('as GGUF in two parts: the model of the whole file', async () => {
    const tensors = await ggufTensors(dtype);
    const whole = await modelFromFiles(core, writeGguf({ entries: ggufEntries(), tensors }));
    const [first, second] = halves(tensors);
    const part = (no: number): [string, GgufEntry][] => [
      ['split.no', { type: 'u32', value: no }],
      ['split.count', { type: 'u32', value: 2 }],
    ];
    const inParts = await modelFromFiles(core, {
      'm-00001-of-00002.gguf': writeGguf({
        entries: [...ggufEntries(), ...part(0)],
        tensors: first,
      }),
      'm-00002-of-00002.gguf': writeGguf({ entries: part(1), tensors: second }),
    });
    expect(inParts.hash).toBe(whole.hash);
    whole.dispose();
    inParts.dispose();
  });

  test('as safetensors in two shards: logits, attention, greedy ids', async () => {
    const entries = await Promise.all(
      checkpoint.tensors.map(async (tensor): Promise<[string, SafetensorsEntry]> => {
        const shape = tensor.rows === 1 ? [tensor.cols] : [tensor.rows, tensor.cols];
        return [
          tensor.fileName,
          { dtype: dtype.toUpperCase(), shape, data: await bytesOf(tensor, dtype) },
        ];
      }),
    );
    const shards = halves(entries).map((half, i) => [`${i}.safetensors`, half] as const);
    const weightMap = Object.fromEntries(
      shards.flatMap(([shard, half]) => half.map(([name]) => [name, shard])),
    );
    await checkHfCase(
      core,
      {
        'config.json': await fixtureBytes(`${folder}/config.json`),
        'model.safetensors.index.json': writeJson({ weight_map: weightMap }),
        ...Object.fromEntries(
          shards.map(([shard, half]) => [shard, writeSafetensors(Object.fromEntries(half))]),
        ),
      },
      golden,
    );
  });
});
