/**
 * What several tests of the package share: one core, errors by code, and a decoder to play with.
 */
import { expect } from 'vitest';

import {
  isKvLensError,
  loadCore,
  type ComputeType,
  type ConfigInput,
  type Core,
  type DType,
  type ErrorCode,
  type ErrorContexts,
  type KvLensError,
  type Model,
} from 'kvlens/core';

/**
 * A decoder with every optional part: grouped heads, biases, head norms, a window, its own head.
 */
export const richConfig: ConfigInput = {
  nLayers: 2,
  nHeads: 4,
  nKvHeads: 2,
  headDim: 8,
  dModel: 24,
  dFf: 40,
  vocabSize: 50,
  maxSeqLen: 64,
  rope: { pairing: 'half_split', theta: 5000, freqFactors: [1, 1, 2, 4] },
  qkvBias: true,
  qkNorm: true,
  tiedEmbedding: false,
  slidingWindow: 7,
};

export const smallConfig: ConfigInput = {
  nLayers: 2,
  nHeads: 2,
  nKvHeads: 1,
  headDim: 4,
  dModel: 8,
  dFf: 12,
  vocabSize: 11,
  maxSeqLen: 16,
};

export function randomModel(
  core: Core,
  config: ConfigInput = smallConfig,
  seed = 1n,
  dtype: 'f32' | 'f64' = 'f32',
): Model {
  return core.randomModel(config, { rng: { state: seed }, dtype });
}

let shared: Promise<Core> | undefined;

/** One core for the tests of a file. */
export function sharedCore(): Promise<Core> {
  shared ??= loadCore();
  return shared;
}

type Failure<C extends ErrorCode> = KvLensError<C> & { readonly context: ErrorContexts[C] };

/** The error that `run` throws, which must have this code. */
export function failure<C extends ErrorCode>(code: C, run: () => unknown): Failure<C> {
  try {
    run();
  } catch (error) {
    return checked(code, error);
  }
  throw new Error(`expected the error ${code}`);
}

/** The error that `promise` rejects with, which must have this code. */
export async function rejection<C extends ErrorCode>(
  code: C,
  promise: Promise<unknown>,
): Promise<Failure<C>> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  if (outcome === undefined) throw new Error(`expected the error ${code}`);
  return checked(code, outcome.error);
}

function checked<C extends ErrorCode>(code: C, error: unknown): Failure<C> {
  if (!isKvLensError(error)) throw error;
  expect(error.code, error.message).toBe(code);
  expect(error.message).not.toBe('');
  return error as unknown as Failure<C>;
}

/** Whether two arrays are the same bytes: 0 and -0 differ, and so do two NaNs. */
export function sameBytes(a: ArrayBufferView, b: ArrayBufferView): boolean {
  const bytes = (view: ArrayBufferView): Uint8Array =>
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  const [left, right] = [bytes(a), bytes(b)];
  return left.length === right.length && left.every((byte, i) => byte === right[i]);
}

/** Largest |difference|; both have to have the same length. */
export function maxDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  let largest = 0;
  for (let i = 0; i < a.length; ++i) {
    const difference = Math.abs(a[i]! - b[i]!);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; ++i) if (values[i]! > values[best]!) best = i;
  return best;
}

/** Values as bytes of a plain float type. */
export function floatBytes(
  dtype: Extract<DType, 'f32' | 'f64'>,
  values: ArrayLike<number>,
): Float32Array | Float64Array {
  return dtype === 'f64' ? Float64Array.from(values) : Float32Array.from(values);
}

/** A model whose parameters are all of one plain type, made by `value(name, index)`. */
export function filledModel(
  core: Core,
  config: ConfigInput,
  value: (name: string, index: number) => number,
  compute: ComputeType = 'f32',
): Model {
  const parameters = core.parameterSpecs(config).map(({ name, shape }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    return {
      name,
      dtype: compute,
      data: floatBytes(
        compute,
        Array.from({ length: size }, (_, i) => value(name, i)),
      ),
    };
  });
  return core.createModel(config, parameters);
}
