/**
 * Writes GGUF files, good and broken: everything that a header says can be overridden.
 */
import { ByteWriter } from './byte-writer.js';

/** Metadata with its GGUF type. */
export type GgufEntry =
  | { readonly type: 'u32' | 'i32' | 'f32' | 'u64'; readonly value: number | bigint }
  | { readonly type: 'bool'; readonly value: boolean | number }
  | { readonly type: 'string'; readonly value: string | Uint8Array }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'floats' | 'ints'; readonly value: readonly number[] }
  | { readonly type: 'raw'; readonly typeId: number; readonly bytes: Uint8Array };

/** A tensor of zeros unless `data` says otherwise. */
export interface GgufTensorEntry {
  readonly name: string;
  /** As the file lists it: the contiguous dimension first. */
  readonly dims: readonly (number | bigint)[];
  /** ggml type number; 0 is F32. */
  readonly type?: number;
  readonly data?: Uint8Array;
  /** Bytes of zeros where there are no `data`; by default 4 a value. */
  readonly bytes?: number;
  /** Instead of where the tensor is put. */
  readonly offset?: number | bigint;
}

export interface GgufContent {
  readonly version?: number;
  readonly magic?: number;
  readonly tensorCount?: number | bigint;
  readonly entryCount?: number | bigint;
  readonly entries: readonly (readonly [string, GgufEntry])[];
  readonly tensors: readonly GgufTensorEntry[];
  readonly alignment?: number;
}

const typeIds = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, u64: 10 } as const;

export function writeGguf(content: GgufContent): Uint8Array<ArrayBuffer> {
  const { version = 3, alignment = 32, entries, tensors } = content;
  const out = new ByteWriter();
  const size = (value: number | bigint) =>
    version === 1 ? out.u32(Number(value)) : out.u64(BigInt(value));
  const string = (text: string | Uint8Array) => {
    const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
    size(bytes.length);
    out.bytes(bytes);
  };
  out.u32(content.magic ?? 0x46554747);
  out.u32(version);
  size(content.tensorCount ?? tensors.length);
  size(content.entryCount ?? entries.length);
  for (const [key, entry] of entries) {
    string(key);
    switch (entry.type) {
      case 'raw':
        out.u32(entry.typeId);
        out.bytes(entry.bytes);
        break;
      case 'strings':
        out.u32(9);
        out.u32(8);
        size(entry.value.length);
        entry.value.forEach(string);
        break;
      case 'floats':
      case 'ints':
        out.u32(9);
        out.u32(entry.type === 'floats' ? 6 : 5);
        size(entry.value.length);
        for (const value of entry.value) {
          if (entry.type === 'floats') out.f32(value);
          else out.u32(value);
        }
        break;
      default:
        out.u32(typeIds[entry.type]);
        if (entry.type === 'string') string(entry.value);
        else if (entry.type === 'bool') out.u8(Number(entry.value));
        else if (entry.type === 'f32') out.f32(Number(entry.value));
        else if (entry.type === 'u64') out.u64(BigInt(entry.value));
        else out.u32(Number(entry.value));
    }
  }
  let offset = 0;
  const padded = (length: number) => Math.ceil(length / alignment) * alignment;
  for (const tensor of tensors) {
    string(tensor.name);
    out.u32(tensor.dims.length);
    tensor.dims.forEach(size);
    out.u32(tensor.type ?? 0);
    out.u64(BigInt(tensor.offset ?? offset));
    offset += padded(byteLength(tensor));
  }
  out.pad(alignment);
  for (const tensor of tensors) {
    out.bytes(tensor.data ?? new Uint8Array(byteLength(tensor)));
    out.pad(alignment);
  }
  return out.finish();
}

function byteLength(tensor: GgufTensorEntry): number {
  const values = tensor.dims.reduce<number>((product, dim) => product * Number(dim), 1);
  return tensor.data?.length ?? tensor.bytes ?? Math.min(values * 4, 1 << 20);
}

/** A whole model of two layers whose sizes are a multiple of nothing much. */
export function smallGguf(): {
  entries: Map<string, GgufEntry>;
  tensors: Map<string, GgufTensorEntry>;
} {
  const u32 = (value: number): GgufEntry => ({ type: 'u32', value });
  const entries = new Map<string, GgufEntry>([
    ['general.architecture', { type: 'string', value: 'llama' }],
    ['llama.block_count', u32(2)],
    ['llama.context_length', u32(16)],
    ['llama.embedding_length', u32(8)],
    ['llama.feed_forward_length', u32(12)],
    ['llama.attention.head_count', u32(4)],
    ['llama.attention.head_count_kv', u32(2)],
    ['llama.attention.layer_norm_rms_epsilon', { type: 'f32', value: 1e-5 }],
    ['llama.rope.dimension_count', u32(2)],
    ['llama.rope.freq_base', { type: 'f32', value: 10000 }],
    ['llama.vocab_size', u32(6)],
    ['tokenizer.ggml.model', { type: 'string', value: 'llama' }],
    ['tokenizer.ggml.tokens', { type: 'strings', value: ['<unk>', '<s>', '</s>', 'a', 'b', 'ab'] }],
    ['tokenizer.ggml.scores', { type: 'floats', value: [0, 0, 0, -1, -2, -3] }],
    ['tokenizer.ggml.token_type', { type: 'ints', value: [2, 3, 3, 1, 1, 1] }],
    ['tokenizer.ggml.bos_token_id', u32(1)],
    ['tokenizer.ggml.eos_token_id', u32(2)],
  ]);
  const tensors = new Map<string, GgufTensorEntry>();
  const add = (name: string, ...dims: number[]) => tensors.set(name, { name, dims });
  add('token_embd.weight', 8, 6);
  for (const layer of ['blk.0', 'blk.1']) {
    add(`${layer}.attn_norm.weight`, 8);
    add(`${layer}.attn_q.weight`, 8, 8);
    add(`${layer}.attn_k.weight`, 8, 4);
    add(`${layer}.attn_v.weight`, 8, 4);
    add(`${layer}.attn_output.weight`, 8, 8);
    add(`${layer}.ffn_norm.weight`, 8);
    add(`${layer}.ffn_gate.weight`, 8, 12);
    add(`${layer}.ffn_up.weight`, 8, 12);
    add(`${layer}.ffn_down.weight`, 12, 8);
  }
  add('output_norm.weight', 8);
  add('output.weight', 8, 6);
  return { entries, tensors };
}
