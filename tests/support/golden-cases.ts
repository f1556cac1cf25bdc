/** What a Hugging Face case, the quantised models and the block table are checked for. */
import { expect } from 'vitest';
import type { Core, DType } from 'kvlens/core';
import { openCheckpoint, type CheckpointInput } from '../../web/src/files/open-checkpoint.js';
import { argmax, maxDifference, sameBytes } from './kvlens.js';
import { modelFromCheckpoint } from './checkpoint-model.js';

export interface HfGolden {
  readonly tokens: number[];
  /** `[T][vocab]`. */
  readonly logits: number[][];
  /** `[layer][head][row][0..row]`. */
  readonly attentions: number[][][][];
  readonly greedy: { readonly prompt: number[]; readonly output: number[] };
}

/**
 * Float32 products and sums of a small decoder against float64: what the reference itself shows.
 */
const float32Tolerance = 2e-5;
/** Epsilon and theta of a GGUF are float32. */
const ggufTolerance = 2e-6;
const float64Tolerance = 1e-9;

export async function checkHfCase(
  core: Core,
  files: CheckpointInput,
  golden: HfGolden,
): Promise<void> {
  const checkpoint = await openCheckpoint(files);
  const model = await modelFromCheckpoint(core, checkpoint);
  const inGguf = checkpoint.format === 'gguf';
  for (const compute of ['f64', 'f32'] as const) {
    const exact = inGguf ? ggufTolerance : float64Tolerance;
    const tolerance = compute === 'f64' ? exact : float32Tolerance;
    const session = core.createSession(model, { compute });
    const replay = session.replay({ tokens: golden.tokens, allLogits: true, capture: 'attention' });
    expect(maxDifference(replay.logits.data, golden.logits.flat())).toBeLessThan(tolerance);
    const { data, shape } = replay.evidence!.attention;
    const T = golden.tokens.length;
    expect(shape).toEqual([golden.attentions.length, golden.attentions[0]!.length, T, T]);
    golden.attentions.forEach((heads, layer) =>
      heads.forEach((rows, head) =>
        rows.forEach((row, position) => {
          const begin = ((layer * heads.length + head) * T + position) * T;
          const padded = [...row, ...Array(T - row.length).fill(0)];
          expect(maxDifference(data.subarray(begin, begin + T), padded)).toBeLessThan(tolerance);
        }),
      ),
    );

    const steps = [session.prefill(golden.tokens.slice(0, 4))];
    for (const token of golden.tokens.slice(4)) steps.push(session.decode(token));
    const vocab = model.config.vocabSize;
    steps.forEach((step, i) => {
      const replayed = replay.logits.data.subarray((i + 3) * vocab, (i + 4) * vocab);
      expect(sameBytes(step.logits, replayed.slice())).toBe(true);
    });
    session.reset();
    const { prompt, output } = golden.greedy;
    expect([...session.generate({ prompt, maxNewTokens: output.length }).tokens]).toEqual(output);
    session.dispose();
  }
  model.dispose();
}

/** A float64 forward over the dequantised weights of a file. */
export interface TypesGolden {
  readonly tokens: number[];
  readonly types: Record<
    string,
    { readonly last_logits: number[]; readonly argmax_every_position: number[] }
  >;
}

/**
 * Products with activations of 8 bits are this near: between logits nearer than that either may
 * win.
 */
const nearTie = 0.05;

export interface TypesResult {
  /** Largest error of the last logits, in double and in single precision. */
  readonly error: { readonly f64: number; readonly f32: number };
  /** Positions at which single precision chose the other token of a near tie. */
  readonly nearTies: readonly number[];
}

/**
 * Double precision agrees on the argmax at every position; so does single precision, but for near
 * ties, which are told. The cache gives the replay's bytes in both.
 */
export async function checkTypes(
  core: Core,
  files: CheckpointInput,
  golden: TypesGolden,
  type: string,
): Promise<TypesResult> {
  const { last_logits, argmax_every_position } = golden.types[type]!;
  const checkpoint = await openCheckpoint(files);
  const before = core.memory().liveBytes;
  const model = await modelFromCheckpoint(core, checkpoint);
  // In memory weights take what they take in the file: nothing is unpacked.
  expect(model.parameterBytes, type).toBe(checkpoint.totalBytes);
  expect(core.memory().liveBytes - before, type).toBeLessThanOrEqual(checkpoint.totalBytes);
  const vocab = model.config.vocabSize;
  const nearTies: number[] = [];
  const run = (compute: 'f32' | 'f64'): Float32Array | Float64Array => {
    const session = core.createSession(model, { compute });
    const { data } = session.replay({ tokens: golden.tokens, allLogits: true }).logits;
    expect(sameBytes(session.prefill(golden.tokens).logits, data.slice(-vocab))).toBe(true);
    expect(session.verify().bytesEqual).toBe(true);
    session.dispose();
    return data;
  };
  const [f64, f32] = [run('f64'), run('f32')];
  const row = (logits: Float32Array | Float64Array, position: number) =>
    logits.subarray(position * vocab, (position + 1) * vocab);
  argmax_every_position.forEach((expected, position) => {
    const exact = row(f64, position);
    expect(argmax(exact), `${type}, position ${position}`).toBe(expected);
    const chosen = argmax(row(f32, position));
    if (chosen === expected) return;
    expect(exact[expected]! - exact[chosen]!, `${type}, position ${position}`).toBeLessThan(
      nearTie,
    );
    nearTies.push(position);
  });
  model.dispose();
  const last = golden.tokens.length - 1;
  return {
    error: {
      f64: maxDifference(row(f64, last), last_logits),
      f32: maxDifference(row(f32, last), last_logits),
    },
    nearTies,
  };
}

/** A table of results; the test runner shows lines that begin with a bar. */
export function typesTable(
  title: string,
  results: readonly (readonly [string, TypesResult])[],
): string {
  const rows = results.map(
    ([name, { error, nearTies }]) =>
      `| ${name} | ${error.f64.toExponential(2)} | ${error.f32.toExponential(2)} | ${nearTies.join(', ') || 'none'} |`,
  );
  return [
    `| ${title} | largest error of the last logits in f64 | in f32 | near ties lost in f32, by position |`,
    ...rows,
  ].join('\n');
}

export interface BlockTable {
  readonly types: Record<
    string,
    { readonly block_size: number; readonly bytes_base64: string; readonly values: number[] }
  >;
}

/** Types of the table that kvlens stores, by the core's names. */
export function storedTypes({ types }: BlockTable): [string, DType][] {
  const names: Record<string, DType> = {
    F16: 'f16',
    BF16: 'bf16',
    Q8_0: 'q8_0',
    Q4_0: 'q4_0',
    Q4_1: 'q4_1',
    Q5_0: 'q5_0',
    Q5_1: 'q5_1',
    Q2_K: 'q2_k',
    Q3_K: 'q3_k',
    Q4_K: 'q4_k',
    Q5_K: 'q5_k',
    Q6_K: 'q6_k',
  };
  return Object.keys(types).flatMap((type) =>
    names[type] ? [[type, names[type]] as [string, DType]] : [],
  );
}

/** Puts the blocks into the rows of an embedding and reads the values back, exactly. */
export function checkBlocks(core: Core, { types }: BlockTable, type: string, dtype: DType): void {
  const { bytes_base64, values } = types[type]!;
  const block = Uint8Array.from(atob(bytes_base64), (character) => character.charCodeAt(0));
  const dModel = Math.max(256, values.length);
  const repeats = dModel / values.length;
  const rows = 6; // a group of four and a rest, for layouts that interleave rows
  const config = {
    nLayers: 1,
    nHeads: 1,
    nKvHeads: 1,
    headDim: 2,
    dModel,
    dFf: 2,
    vocabSize: rows,
    maxSeqLen: 2,
  };
  const data = new Uint8Array(rows * repeats * block.length);
  for (let i = 0; i < rows * repeats; ++i) data.set(block, i * block.length);
  const model = core.createModel(
    config,
    core.parameterSpecs(config).map(({ name, shape }) =>
      name === 'token_embedding'
        ? { name, dtype, data }
        : {
            name,
            dtype: 'f32' as const,
            data: new Float32Array(shape.reduce((a, b) => a * b, 1)),
          },
    ),
  );
  const read = model.readRows('token_embedding', 0, rows);
  for (let i = 0; i < read.length; ++i) {
    expect(
      Object.is(read[i], values[i % values.length]) || read[i] === values[i % values.length],
      `${type} ${i}`,
    ).toBe(true);
  }
  model.dispose();
}
