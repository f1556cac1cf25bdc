/**
 * Writes checkpoints in Hugging Face's layout, good and broken.
 */
import { ByteWriter } from './byte-writer.js';

/** A tensor as a safetensors header describes it; any field can be given a wrong value. */
export interface SafetensorsEntry {
  readonly dtype?: unknown;
  readonly shape: unknown;
  /**
   * Zeros unless these are given; as many as F32 and the shape call for, unless `bytes` says
   * otherwise.
   */
  readonly data?: Uint8Array;
  readonly bytes?: number;
  readonly data_offsets?: unknown;
}

export type SafetensorsTable = Readonly<Record<string, SafetensorsEntry>>;

export interface SafetensorsFaults {
  readonly headerLength?: bigint;
  /** Instead of the JSON of the table. */
  readonly header?: string;
  /** Bytes after the data. */
  readonly extra?: number;
}

export function writeSafetensors(
  table: SafetensorsTable,
  faults: SafetensorsFaults = {},
): Uint8Array<ArrayBuffer> {
  let end = 0;
  const data: Uint8Array[] = [];
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  for (const [name, entry] of Object.entries(table)) {
    const shape = Array.isArray(entry.shape) ? (entry.shape as number[]) : [];
    const bytes =
      entry.data?.length ?? entry.bytes ?? 4 * shape.reduce((product, size) => product * size, 1);
    data.push(entry.data ?? new Uint8Array(bytes));
    header[name] = {
      dtype: entry.dtype ?? 'F32',
      shape: entry.shape,
      data_offsets: entry.data_offsets ?? [end, end + bytes],
    };
    end += bytes;
  }
  const text = new TextEncoder().encode(faults.header ?? JSON.stringify(header));
  const out = new ByteWriter();
  out.u64(faults.headerLength ?? BigInt(text.length));
  out.bytes(text);
  data.forEach((bytes) => out.bytes(bytes));
  out.bytes(new Uint8Array(faults.extra ?? 0));
  return out.finish();
}

export function writeJson(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
}

interface LlamaDimensions {
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly hidden: number;
  readonly intermediate: number;
  readonly vocab: number;
  readonly positions: number;
}

interface HfModel {
  readonly config: Record<string, unknown>;
  readonly tensors: Record<string, SafetensorsEntry>;
}

/** config.json and tensors of a whole llama model; every weight by `value`, or zero. */
export function llamaHf(dimensions: LlamaDimensions, value?: () => number): HfModel {
  const { layers, heads, kvHeads, headDim, hidden, intermediate, vocab, positions } = dimensions;
  const config = {
    model_type: 'llama',
    hidden_act: 'silu',
    hidden_size: hidden,
    intermediate_size: intermediate,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headDim,
    vocab_size: vocab,
    max_position_embeddings: positions,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    tie_word_embeddings: false,
    bos_token_id: 1,
    eos_token_id: 2,
  };
  const tensors: Record<string, SafetensorsEntry> = {};
  const add = (name: string, ...shape: number[]) => {
    const size = shape.reduce((product, length) => product * length, 1);
    tensors[`${name}.weight`] = {
      shape,
      ...(value && { data: new Uint8Array(Float32Array.from({ length: size }, value).buffer) }),
    };
  };
  add('model.embed_tokens', vocab, hidden);
  for (let index = 0; index < layers; ++index) {
    const layer = `model.layers.${index}`;
    add(`${layer}.input_layernorm`, hidden);
    add(`${layer}.self_attn.q_proj`, heads * headDim, hidden);
    add(`${layer}.self_attn.k_proj`, kvHeads * headDim, hidden);
    add(`${layer}.self_attn.v_proj`, kvHeads * headDim, hidden);
    add(`${layer}.self_attn.o_proj`, hidden, heads * headDim);
    add(`${layer}.post_attention_layernorm`, hidden);
    add(`${layer}.mlp.gate_proj`, intermediate, hidden);
    add(`${layer}.mlp.up_proj`, intermediate, hidden);
    add(`${layer}.mlp.down_proj`, hidden, intermediate);
  }
  add('model.norm', hidden);
  add('lm_head', vocab, hidden);
  return { config, tensors };
}

/** Of two layers. */
export const smallHf = (): HfModel =>
  llamaHf({
    layers: 2,
    heads: 4,
    kvHeads: 2,
    headDim: 2,
    hidden: 8,
    intermediate: 12,
    vocab: 6,
    positions: 16,
  });
