/**
 * Writes checkpoints in Hugging Face's layout, good and broken.
 */
import { ByteWriter } from './byte-writer.js';

/** A tensor as a safetensors header describes it; any field can be given a wrong value. */
export interface SafetensorsEntry {
  readonly dtype?: unknown;
  readonly shape: unknown;
  /** Zeros unless these are given; as many as F32 and the shape call for, unless `bytes` says otherwise. */
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
    const bytes = entry.data?.length ?? entry.bytes ?? 4 * shape.reduce((product, size) => product * size, 1);
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

/** config.json and tensors of a whole llama model of two layers. */
export function smallHf(): { config: Record<string, unknown>; tensors: Record<string, SafetensorsEntry> } {
  const config = {
    model_type: 'llama', hidden_act: 'silu', hidden_size: 8, intermediate_size: 12,
    num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 2,
    vocab_size: 6, max_position_embeddings: 16, rms_norm_eps: 1e-5, rope_theta: 10000,
    tie_word_embeddings: false, bos_token_id: 1, eos_token_id: 2,
  };
  const tensors: Record<string, SafetensorsEntry> = {};
  const add = (name: string, ...shape: number[]) => {
    tensors[`${name}.weight`] = { shape };
  };
  add('model.embed_tokens', 6, 8);
  for (const layer of ['model.layers.0', 'model.layers.1']) {
    add(`${layer}.input_layernorm`, 8);
    add(`${layer}.self_attn.q_proj`, 8, 8);
    add(`${layer}.self_attn.k_proj`, 4, 8);
    add(`${layer}.self_attn.v_proj`, 4, 8);
    add(`${layer}.self_attn.o_proj`, 8, 8);
    add(`${layer}.post_attention_layernorm`, 8);
    add(`${layer}.mlp.gate_proj`, 12, 8);
    add(`${layer}.mlp.up_proj`, 12, 8);
    add(`${layer}.mlp.down_proj`, 8, 12);
  }
  add('model.norm', 8);
  add('lm_head', 6, 8);
  return { config, tensors };
}
