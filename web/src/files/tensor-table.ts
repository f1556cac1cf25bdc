/**
 * The tensors that a file lists, and the checks for every format: names are unique, every range
 * lies within the file, and no two ranges overlap.
 */
import type { DType } from '../types.js';
import { dtypes } from './dtypes.js';
import { invalid } from './file-errors.js';
import { truncated, type ByteSource } from './source.js';

/** The place of a tensor in its file. */
export interface TensorRange {
  /** Name in the file. */
  readonly name: string;
  readonly source: ByteSource;
  /** From the start of `source`. */
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** A tensor as its file describes it. */
export interface FileTensor extends TensorRange {
  readonly dtype: DType;
  /** Row-major: the last dimension is contiguous. */
  readonly shape: readonly number[];
}

/**
 * Bytes of a tensor of `shape`, whose last dimension must be a whole number of blocks.
 * Errors: invalid_file (a dimension that is not positive, a row that is not a whole number of
 * blocks, too many values).
 */
export function tensorBytes(
  file: string,
  name: string,
  dtype: DType,
  shape: readonly number[],
): number {
  let values = 1;
  for (const dimension of shape) {
    if (!Number.isSafeInteger(dimension) || dimension < 1) {
      throw invalid(file, `shape of ${name}`, shape, 'positive dimensions');
    }
    values *= dimension;
  }
  const { blockValues, blockBytes } = dtypes[dtype];
  const row = shape.at(-1) ?? 1;
  if (row % blockValues !== 0) {
    const allowed = `a multiple of ${blockValues} for ${dtype}`;
    throw invalid(file, `row length of ${name}`, row, allowed);
  }
  const bytes = (values / blockValues) * blockBytes;
  if (!Number.isSafeInteger(values) || !Number.isSafeInteger(bytes)) {
    throw invalid(file, `shape of ${name}`, shape, 'less than 2^53 values');
  }
  return bytes;
}

/** Checks a file's tensors. Errors: invalid_file (a repeated name, overlaps), truncated_file. */
export function checkTensorTable(tensors: readonly TensorRange[]): void {
  const bySource = new Map<ByteSource, TensorRange[]>();
  const names = new Set<string>();
  for (const tensor of tensors) {
    if (names.has(tensor.name)) {
      throw invalid(tensor.source.name, 'tensor name', tensor.name, 'unique');
    }
    names.add(tensor.name);
    const list = bySource.get(tensor.source) ?? [];
    list.push(tensor);
    bySource.set(tensor.source, list);
  }
  for (const [source, list] of bySource) {
    list.sort((a, b) => a.byteOffset - b.byteOffset);
    let end = 0;
    let previous = '';
    for (const tensor of list) {
      if (tensor.byteOffset < end) {
        const allowed = `at or after ${end}, where ${previous} ends`;
        throw invalid(source.name, `offset of ${tensor.name}`, tensor.byteOffset, allowed);
      }
      end = tensor.byteOffset + tensor.byteLength;
      previous = tensor.name;
      if (end > source.size) throw truncated(source.name, end, source.size);
    }
  }
}
