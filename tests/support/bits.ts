/**
 * The bits of float logits: one hash a storage type, computed the same way in Node, Chromium and
 * Firefox, in every build, with any number of threads, and in chunks of any size.
 */
import { DTYPES, isKvLensError, loadCore, type Core, type Variant } from 'kvlens/core';

import { typedConfig, typedModel } from './typed-models.js';

/** A build of the module and how many threads it gets. */
export interface Build {
  readonly variant: Variant;
  readonly threads: number;
}

export const builds: readonly Build[] = [
  { variant: 'simd', threads: 1 },
  { variant: 'relaxed', threads: 1 },
  ...[1, 2, 3].map((threads) => ({ variant: 'simd-mt', threads }) as const),
  ...[1, 2, 3].map((threads) => ({ variant: 'relaxed-mt', threads }) as const),
];

/** The core of a build; undefined where the engine lacks what the build needs. */
export async function coreOf(build: Build): Promise<Core | undefined> {
  try {
    return await loadCore(build);
  } catch (error) {
    if (isKvLensError(error) && error.code === 'unsupported_environment') return undefined;
    throw error;
  }
}

/** 64-bit FNV-1a, 16 hexadecimal digits. */
export function bitHash(...arrays: readonly ArrayBufferView[]): string {
  let hash = 0xcbf29ce484222325n;
  for (const { buffer, byteOffset, byteLength } of arrays) {
    for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) {
      hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
    }
  }
  return hash.toString(16).padStart(16, '0');
}

/** A sampled run: the same seed gives the same tokens everywhere. */
export function sampledTokens(core: Core): number[] {
  const model = typedModel(core, 'q8_0');
  const session = core.createSession(model);
  const sampling = { temperature: 0.9, topK: 30, topP: 0.95, minP: 0.005, repetitionPenalty: 1.1 };
  const { tokens } = session.generate({
    prompt: [3, 14, 15],
    maxNewTokens: 64,
    sampling,
    rng: { state: 2026n },
  });
  session.dispose();
  model.dispose();
  return [...tokens];
}

const prompt = Array.from({ length: 140 }, (_, i) => (i * i + 3 * i + 5) % typedConfig.vocabSize);

/**
 * For each storage type, and for one of them with keys and values in fewer bits, the hash of the
 * logits after a prefill of 140 tokens and after four decodes. Throws when the size of the chunks
 * (1 is the serial path) changes a bit.
 */
export function logitsHashes(core: Core): Record<string, string> {
  const cases = [
    ...DTYPES.map((dtype) => ({ name: dtype as string, dtype, kvDtype: 'f32' as const })),
    ...(['bf16', 'q8_0'] as const).map((kvDtype) => ({
      name: `q8_0, ${kvDtype} cache`,
      dtype: 'q8_0' as const,
      kvDtype,
    })),
  ];
  return Object.fromEntries(
    cases.map(({ name, dtype, kvDtype }) => {
      const model = typedModel(core, dtype);
      const hashes = new Set(
        [1, 7, 32, 128].map((chunkRows) => {
          const session = core.createSession(model, { compute: 'f32', kvDtype, chunkRows });
          const logits = [
            session.prefill(prompt).logits,
            ...[7, 11, 13, 17].map((token) => session.decode(token).logits),
          ];
          session.dispose();
          return bitHash(...logits);
        }),
      );
      model.dispose();
      if (hashes.size !== 1)
        throw new Error(`${name}: the size of the chunks changes bits: ${[...hashes].join(', ')}`);
      return [name, [...hashes][0]!];
    }),
  );
}
