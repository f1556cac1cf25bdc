/**
 * Checks the arguments that JavaScript gives before the module sees them: numbers that are not
 * counts, ids that are not ids, memory that is gone. The core checks ranges that depend on a model.
 */
import { KvLensError } from '../errors.js';
import type {
  CaptureOptions,
  ComputeType,
  Config,
  ConfigInput,
  DType,
  Rng,
  SamplingOptions,
  TokenIds,
} from '../types.js';
import { DTYPES } from '../types.js';

const MAX_COUNT = 0xffff_ffff;

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'object' && value !== null) return value.constructor?.name ?? 'an object';
  return String(value);
}

export function invalidArgument(
  field: string,
  value: unknown,
  allowed: string,
): KvLensError<'invalid_argument'> {
  const found = describe(value);
  return new KvLensError(
    'invalid_argument',
    { field, value: found, allowed },
    `${field} is ${found}; allowed: ${allowed}`,
  );
}

/** Checks for an integer in `0..2^32 - 1`. Errors: invalid_argument. */
export function count(field: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > MAX_COUNT) {
    throw invalidArgument(field, value, 'integers from 0 to 4294967295');
  }
  return value;
}

/** Checks for an integer in `0..limit - 1`. Errors: invalid_argument. */
export function index(field: string, value: unknown, limit: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value >= limit) {
    throw invalidArgument(
      field,
      value,
      limit === 0 ? 'none, there is nothing yet' : `integers from 0 to ${limit - 1}`,
    );
  }
  return value;
}

function finite(field: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw invalidArgument(field, value, 'finite numbers');
  return value;
}

function boolean(field: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidArgument(field, value, 'true, false');
  return value;
}

function oneOf<T extends string>(field: string, value: unknown, values: readonly T[]): T {
  const found = values.find((candidate) => candidate === value);
  if (found === undefined) throw invalidArgument(field, value, values.join(', '));
  return found;
}

export function string(field: string, value: unknown): string {
  if (typeof value !== 'string') throw invalidArgument(field, value, 'strings');
  return value;
}

export function flag(field: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw invalidArgument(field, value, 'true, false');
}

export function dtype(field: string, value: unknown): DType {
  return oneOf(field, value, DTYPES);
}

export function compute(value: unknown): ComputeType {
  return oneOf('compute', value, ['f32', 'f64']);
}

function object(field: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw invalidArgument(field, value, 'objects');
  return value as Record<string, unknown>;
}

function isDetached(buffer: ArrayBufferLike): boolean {
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

/** Checks token ids or lengths: integers in `0..2^32 - 1`. Errors: invalid_argument. */
export function counts(field: string, value: TokenIds): Uint32Array {
  if (value instanceof Uint32Array) {
    if (isDetached(value.buffer))
      throw invalidArgument(field, 'detached', 'arrays whose buffer is not detached');
    return value;
  }
  if (!Array.isArray(value)) throw invalidArgument(field, value, 'Uint32Array, number[]');
  for (let i = 0; i < value.length; ++i) count(`${field}[${i}]`, value[i]);
  return Uint32Array.from(value);
}

/** Returns the bytes of any buffer or view. Errors: invalid_argument. */
export function bytes(field: string, value: ArrayBufferView | ArrayBuffer): Uint8Array {
  const isView = ArrayBuffer.isView(value);
  if (!isView && !(value instanceof ArrayBuffer))
    throw invalidArgument(field, value, 'ArrayBuffer, typed arrays');
  const buffer = isView ? value.buffer : value;
  if (isDetached(buffer))
    throw invalidArgument(field, 'detached', 'arrays whose buffer is not detached');
  return isView
    ? new Uint8Array(buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(buffer);
}

/** Completes a configuration with its defaults. The core checks the ranges. */
export function config(input: ConfigInput): Config {
  const given = object('config', input);
  const rope = object('config.rope', given.rope ?? {});
  const size = (field: string): number => count(`config.${field}`, given[field]);
  const factors = rope.freqFactors ?? [];
  if (!Array.isArray(factors))
    throw invalidArgument('config.rope.freqFactors', factors, 'number[]');
  return {
    nLayers: size('nLayers'),
    nHeads: size('nHeads'),
    nKvHeads: size('nKvHeads'),
    headDim: size('headDim'),
    dModel: size('dModel'),
    dFf: size('dFf'),
    vocabSize: size('vocabSize'),
    maxSeqLen: size('maxSeqLen'),
    rmsNormEps: finite('config.rmsNormEps', given.rmsNormEps ?? 1e-5),
    rope: {
      pairing: oneOf('config.rope.pairing', rope.pairing ?? 'interleaved', [
        'interleaved',
        'half_split',
      ]),
      theta: finite('config.rope.theta', rope.theta ?? 10000),
      freqFactors: factors.map((factor, i) => finite(`config.rope.freqFactors[${i}]`, factor)),
    },
    qkvBias: boolean('config.qkvBias', given.qkvBias ?? false),
    qkNorm: boolean('config.qkNorm', given.qkNorm ?? false),
    tiedEmbedding: boolean('config.tiedEmbedding', given.tiedEmbedding ?? true),
    slidingWindow: count('config.slidingWindow', given.slidingWindow ?? 0),
  };
}

/** Completes sampling options with their defaults. Errors: invalid_argument. */
export function sampling(options: SamplingOptions): {
  greedy: boolean;
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  repetitionPenalty: number;
} {
  object('sampling', options);
  const temperature = finite('temperature', options.temperature ?? 0);
  return {
    greedy: temperature === 0,
    temperature: temperature === 0 ? 1 : temperature,
    topK: count('topK', options.topK ?? 0),
    topP: finite('topP', options.topP ?? 1),
    minP: finite('minP', options.minP ?? 0),
    repetitionPenalty: finite('repetitionPenalty', options.repetitionPenalty ?? 1),
  };
}

/** Returns the state to draw from. Greedy choices draw nothing and need none. */
export function rngState(rng: Rng | undefined, greedy: boolean): bigint {
  if (rng === undefined) {
    if (greedy) return 0n;
    throw invalidArgument('rng', rng, 'an object with a state, since temperature is above 0');
  }
  return state64('rng.state', object('rng', rng).state);
}

/** Checks for an unsigned 64-bit integer, given as a bigint. */
export function state64(field: string, value: unknown): bigint {
  if (typeof value !== 'bigint' || BigInt.asUintN(64, value) !== value) {
    throw invalidArgument(field, value, 'bigints from 0n to 2n ** 64n - 1n');
  }
  return value;
}

/** Returns what to capture, or undefined for nothing. Errors: invalid_argument. */
export function capture(
  options: CaptureOptions | undefined,
  nLayers: number,
): { all: boolean; layers: number[]; lastRow: boolean } | undefined {
  if (options === undefined) return undefined;
  object('options', options);
  const kind = oneOf('capture', options.capture ?? 'none', ['none', 'attention', 'all']);
  const rows = oneOf('rows', options.rows ?? 'all', ['all', 'last']);
  const given = options.layers;
  if (given !== undefined && !Array.isArray(given))
    throw invalidArgument('layers', given, 'number[]');
  if (kind === 'none') return undefined;
  const layers =
    given === undefined
      ? Array.from({ length: nLayers }, (_, layer) => layer)
      : given.map((layer, i) => index(`layers[${i}]`, layer, nLayers));
  if (layers.length === 0) throw invalidArgument('layers', '[]', 'at least one layer');
  for (let i = 1; i < layers.length; ++i) {
    if (layers[i - 1]! >= layers[i]!)
      throw invalidArgument('layers', layers.join(','), 'layers in ascending order');
  }
  return { all: kind === 'all', layers, lastRow: rows === 'last' };
}
