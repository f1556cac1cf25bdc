/**
 * The safetensors container: an 8-byte length, a JSON table, the data.
 *
 * As the format requires, tensors cover the data without gaps or overlaps, up to the end of the
 * file.
 */
import { dtypeByName } from './dtypes.js';
import { isObject, parseJson } from './json.js';
import { invalid, unsupported } from './file-errors.js';
import { truncated, type ByteSource } from './source.js';
import {
  checkTensorTable,
  tensorBytes,
  type FileTensor,
  type TensorRange,
} from './tensor-table.js';

const longestHeader = 100_000_000; // the limit of the reference implementation

/** One safetensors file, without its tensor data. */
export interface SafetensorsFile {
  readonly source: ByteSource;
  readonly tensors: readonly FileTensor[];
  /** The `__metadata__` entry, if any. */
  readonly metadata: ReadonlyMap<string, string>;
}

/**
 * Reads the table of a safetensors file. Tensors whose name `skip` accepts are left out, whatever
 * their type.
 * Errors: invalid_file, unsupported_file (a dtype), truncated_file and those of the source.
 */
export async function readSafetensors(
  source: ByteSource,
  skip: (name: string) => boolean = () => false,
  signal?: AbortSignal,
): Promise<SafetensorsFile> {
  const file = source.name;
  const prefix = await source.read(0, 8, signal);
  const length = new DataView(prefix.buffer, prefix.byteOffset, 8).getBigUint64(0, true);
  if (length < 2n || length > longestHeader) {
    throw invalid(file, 'header length', length, `from 2 to ${longestHeader}`);
  }
  const dataOffset = 8 + Number(length);
  const header = parseJson(file, 'header', await source.read(8, Number(length), signal));

  const tensors: FileTensor[] = [];
  const ranges: TensorRange[] = []; // of all tensors
  const metadata = new Map<string, string>();
  for (const [name, entry] of Object.entries(header)) {
    if (!isObject(entry)) throw invalid(file, name, entry, 'an object');
    if (name === '__metadata__') {
      for (const [key, value] of Object.entries(entry)) metadata.set(key, String(value));
    } else {
      const range = parseRange(source, name, entry, dataOffset);
      ranges.push(range);
      if (!skip(name)) tensors.push(parseEntry(range, entry));
    }
  }
  checkTensorTable(ranges);
  checkCover(source, ranges, dataOffset);
  return { source, tensors, metadata };
}

function parseRange(
  source: ByteSource,
  name: string,
  entry: Readonly<Record<string, unknown>>,
  dataOffset: number,
): TensorRange {
  const range = entry['data_offsets'];
  if (!isNumberList(range) || range.length !== 2 || range[1]! < range[0]!) {
    throw invalid(source.name, `data_offsets of ${name}`, range, '[begin, end]');
  }
  const [begin = 0, end = 0] = range;
  return { name, source, byteOffset: dataOffset + begin, byteLength: end - begin };
}

function parseEntry(range: TensorRange, entry: Readonly<Record<string, unknown>>): FileTensor {
  const { name } = range;
  const file = range.source.name;
  const { dtype: typeName, shape } = entry;
  const dtype = typeof typeName === 'string' ? dtypeByName(typeName) : undefined;
  if (dtype === undefined || !/^B?F(16|32|64)$/.test(String(typeName))) {
    throw unsupported(file, `dtype of ${name}`, typeName, 'F64, F32, F16 and BF16');
  }
  if (!isNumberList(shape)) throw invalid(file, `shape of ${name}`, shape, 'a list of sizes');
  const byteLength = tensorBytes(file, name, dtype, shape);
  if (range.byteLength !== byteLength) {
    const allowed = `${byteLength} bytes, as dtype and shape say`;
    throw invalid(file, `data_offsets of ${name}`, entry['data_offsets'], allowed);
  }
  return { ...range, dtype, shape };
}

function isNumberList(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((entry) => Number.isSafeInteger(entry) && entry >= 0);
}

/** Ranges do not overlap, so they cover the data if their sizes add up to the end of the file. */
function checkCover(source: ByteSource, tensors: readonly TensorRange[], dataOffset: number): void {
  let end = dataOffset;
  for (const tensor of tensors) end += tensor.byteLength;
  if (end > source.size) throw truncated(source.name, end, source.size);
  if (end < source.size) {
    const allowed = `${end}: every byte of the data belongs to a tensor`;
    throw invalid(source.name, 'file size', source.size, allowed);
  }
}
