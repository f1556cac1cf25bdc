/**
 * `Checkpoint`, the description of a model that every format is turned into: a configuration and
 * the place of each parameter's bytes. A `Checkpoint` that exists is complete and consistent. No
 * weight has been read.
 */
import type { TokenizerData } from '../text/tokenizer-data.js';
import { isKvLensError, type KvLensError } from '../errors.js';
import type { Config, DType, ParameterSpec } from '../types.js';
import { dtypes } from './dtypes.js';
import { invalid, show, unsupported } from './file-errors.js';
import type { ByteSource } from './source.js';
import type { FileTensor } from './tensor-table.js';

/** The place of one parameter's bytes. */
export interface CheckpointTensor {
  /** The core's name: `token_embedding`, `layers.0.q_proj`, ... */
  readonly name: string;
  /** Name in the file. */
  readonly fileName: string;
  readonly dtype: DType;
  /** 1 for a vector. */
  readonly rows: number;
  readonly cols: number;
  readonly source: ByteSource;
  /** From the start of `source`; `rows * cols` values, row-major. */
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** A file format. */
export type CheckpointFormat = 'gguf' | 'safetensors' | 'llama2c';

/**
 * Something in a file that kvlens set aside because the model is complete without it, or that it
 * had to choose about.
 */
export interface CheckpointWarning {
  readonly file: string;
  readonly field: string;
  /** The value found. */
  readonly value: string;
  /** One sentence: what was found and what kvlens does about it. */
  readonly message: string;
}

/** A model on disk or on a server, fully described and checked before any weight is loaded. */
export interface Checkpoint {
  readonly format: CheckpointFormat;
  /** As the file names it: `llama`, `mistral`, `qwen2`, `qwen3`. */
  readonly architecture: string;
  /** The model's name, if the file states one. */
  readonly name: string | undefined;
  readonly config: Config;
  /** Every parameter that `config` calls for, in the core's order. */
  readonly tensors: readonly CheckpointTensor[];
  /** Sum of the tensors' `byteLength`. */
  readonly totalBytes: number;
  /** Undefined if the checkpoint has none. */
  readonly tokenizer: TokenizerData | undefined;
  /** Why there is no tokenizer although the checkpoint has one. */
  readonly tokenizerProblem: KvLensError | undefined;
  /** In the order in which they were found. */
  readonly warnings: readonly CheckpointWarning[];
  /** Source of the chat template, if the checkpoint has one. */
  readonly chatTemplate: string | undefined;
  /** The file's metadata, for display. */
  readonly metadata: ReadonlyMap<string, string>;
}

/** Every parameter that `config` calls for, in the core's order. */
export function parameterSpecs(config: Config): ParameterSpec[] {
  const { dModel, dFf, headDim, vocabSize } = config;
  const qWidth = config.nHeads * headDim;
  const kvWidth = config.nKvHeads * headDim;
  const specs: ParameterSpec[] = [];
  const add = (name: string, ...shape: number[]) => specs.push({ name, shape });

  add('token_embedding', vocabSize, dModel);
  for (let i = 0; i < config.nLayers; ++i) {
    const layer = `layers.${i}`;
    add(`${layer}.attention_norm`, dModel);
    for (const [letter, width] of [
      ['q', qWidth],
      ['k', kvWidth],
      ['v', kvWidth],
    ] as const) {
      add(`${layer}.${letter}_proj`, width, dModel);
      if (config.qkvBias) add(`${layer}.${letter}_bias`, width);
    }
    if (config.qkNorm) {
      add(`${layer}.q_norm`, headDim);
      add(`${layer}.k_norm`, headDim);
    }
    add(`${layer}.o_proj`, dModel, qWidth);
    add(`${layer}.ffn_norm`, dModel);
    add(`${layer}.gate_proj`, dFf, dModel);
    add(`${layer}.up_proj`, dFf, dModel);
    add(`${layer}.down_proj`, dModel, dFf);
  }
  add('final_norm', dModel);
  if (!config.tiedEmbedding) add('lm_head', vocabSize, dModel);
  return specs;
}

/** The largest value of each dimension: beyond any model, too small for products to overflow. */
export const limits = {
  nLayers: 4096,
  nHeads: 65536,
  headDim: 65536,
  dModel: 1 << 24,
  dFf: 1 << 24,
  vocabSize: 1 << 24,
  maxSeqLen: 2 ** 31 - 1,
} as const;

/** A format's names of the fields that `checkConfig` checks. */
export interface FieldNames {
  readonly nHeads: string;
  readonly nKvHeads: string;
  readonly headDim: string;
}

/**
 * Checks the relations between fields. The reader of the format has checked their ranges.
 * Errors: invalid_file.
 */
export function checkConfig(file: string, config: Config, names: FieldNames): void {
  const { nHeads, nKvHeads, headDim } = config;
  if (nHeads % nKvHeads !== 0) {
    throw invalid(file, names.nHeads, nHeads, `a multiple of ${names.nKvHeads} ${nKvHeads}`);
  }
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    throw invalid(file, names.headDim, headDim, 'an even integer');
  }
}

/**
 * Finds each parameter of `config` among the file's tensors. `canonicalName` translates a tensor's
 * name into the core's, or returns undefined for a name that no such model has.
 * Errors: invalid_file (missing tensor, wrong shape), unsupported_file (an extra tensor, a vector
 * stored in blocks).
 */
export function bindTensors(
  file: string,
  config: Config,
  tensors: readonly FileTensor[],
  canonicalName: (name: string) => string | undefined,
): CheckpointTensor[] {
  const byName = new Map<string, FileTensor>();
  for (const tensor of tensors) {
    const name = canonicalName(tensor.name);
    const allowed = 'the tensors of llama, mistral, qwen2 and qwen3 as configured';
    if (name === undefined) throw unsupported(file, 'tensor', tensor.name, allowed);
    const first = byName.get(name);
    if (first !== undefined) throw invalid(file, 'tensor', tensor.name, `other than ${first.name}`);
    byName.set(name, tensor);
  }
  const bound = parameterSpecs(config).map((spec): CheckpointTensor => {
    const tensor = byName.get(spec.name);
    if (tensor === undefined) {
      throw invalid(file, `tensor for ${spec.name}`, undefined, show(spec.shape));
    }
    byName.delete(spec.name);
    const { dtype, source, byteOffset, byteLength, shape } = tensor;
    if (show(shape) !== show(spec.shape)) {
      throw invalid(file, `shape of ${tensor.name}`, shape, show(spec.shape));
    }
    if (shape.length === 1 && dtypes[dtype].blockValues > 1) {
      const supported = 'F64, F32, F16 and BF16 for a vector';
      throw unsupported(file, `type of ${tensor.name}`, dtype, supported);
    }
    const [rows, cols] = shape.length === 1 ? [1, shape[0] as number] : (shape as [number, number]);
    const { name } = spec;
    return { name, fileName: tensor.name, dtype, rows, cols, source, byteOffset, byteLength };
  });
  for (const [name, tensor] of byName) {
    throw unsupported(file, 'tensor', tensor.name, `no ${name} with this configuration`);
  }
  return bound;
}

/** Sum of the tensors' bytes. */
export function totalBytesOf(tensors: readonly CheckpointTensor[]): number {
  return tensors.reduce((sum, tensor) => sum + tensor.byteLength, 0);
}

/** Collects the warnings about one checkpoint. */
export class Warnings {
  readonly list: CheckpointWarning[] = [];

  /** `consequence` completes the sentence "FIELD is VALUE; ...". */
  add(file: string, field: string, value: unknown, consequence: string): void {
    const shown = show(value);
    const message = `${file}: ${field} is ${shown}; ${consequence}`;
    this.list.push({ file, field, value: shown, message });
  }
}

/**
 * The tokenizer that `read` returns. A tokenizer that kvlens does not support leaves the weights
 * usable: then the result is the reason, which is also a warning.
 */
export async function tokenizerOrProblem<T>(
  file: string,
  warnings: Warnings,
  read: () => T | undefined | Promise<T | undefined>,
): Promise<{ tokenizer: T | undefined; tokenizerProblem: KvLensError | undefined }> {
  try {
    return { tokenizer: await read(), tokenizerProblem: undefined };
  } catch (error) {
    if (!isKvLensError(error) || !/^unsupported_/.test(error.code)) throw error;
    warnings.add(file, 'tokenizer', error.message, 'text cannot be used with this model');
    return { tokenizer: undefined, tokenizerProblem: error };
  }
}
