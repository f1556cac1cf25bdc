/**
 * The builds of the module: where their files are, which of them run here, and which one to take.
 *
 * The addresses are written so that bundlers see the files as assets and copy them as they are; the
 * script is imported by its address and is told where everything is, so it never looks beside
 * itself.
 */
import { relaxedSimd, simd, threads as sharedThreads } from 'wasm-feature-detect';

import { KvLensError } from './errors.js';
import type { ModuleOptions, Variant } from './types.js';

export interface VariantFiles {
  readonly script: URL;
  readonly wasm: URL;
}

export function variantFiles(variant: Variant): VariantFiles {
  switch (variant) {
    case 'simd':
      return {
        script: new URL('./kvlens-simd.mjs', import.meta.url),
        wasm: new URL('./kvlens-simd.wasm', import.meta.url),
      };
    case 'relaxed':
      return {
        script: new URL('./kvlens-relaxed.mjs', import.meta.url),
        wasm: new URL('./kvlens-relaxed.wasm', import.meta.url),
      };
    case 'simd-mt':
      return {
        script: new URL('./kvlens-simd-mt.mjs', import.meta.url),
        wasm: new URL('./kvlens-simd-mt.wasm', import.meta.url),
      };
    case 'relaxed-mt':
      return {
        script: new URL('./kvlens-relaxed-mt.mjs', import.meta.url),
        wasm: new URL('./kvlens-relaxed-mt.wasm', import.meta.url),
      };
  }
}

/** Threads beyond this many wait for memory more than they compute. */
const MAX_AUTO_THREADS = 8;

/** Leaves a core to the page and the rest of the machine where there are more than two. */
export function automaticThreads(cores: number): number {
  return Math.min(cores > 2 ? cores - 1 : cores, MAX_AUTO_THREADS);
}

export interface Choice {
  readonly variant: Variant;
  readonly threads: number;
  readonly why: readonly string[];
}

/**
 * Errors: invalid_argument; unsupported_environment if this engine lacks what was asked for.
 */
export async function chooseVariant(
  options: ModuleOptions,
  defaultThreads: 'auto' | 1,
): Promise<Choice> {
  const wanted = options.threads ?? defaultThreads;
  if (wanted !== 'auto' && !(Number.isInteger(wanted) && wanted >= 1 && wanted <= 64)) {
    throw new KvLensError(
      'invalid_argument',
      { field: 'threads', value: String(wanted), allowed: "'auto', 1 to 64" },
      `threads is ${String(wanted)}; allowed: 'auto' or integers from 1 to 64`,
    );
  }
  const why: string[] = [];
  if (!(await simd()))
    throw unsupported(
      'WebAssembly SIMD',
      'absent',
      'this engine has no WebAssembly SIMD, which kvlens needs',
    );
  const hasRelaxed = (await relaxedSimd()) && !baselineDotsAreWrong();
  const shared = await sharingObstacle();
  if (options.variant !== undefined) {
    const { variant } = options;
    if (variant.startsWith('relaxed') && !hasRelaxed) {
      throw unsupported('variant', variant, 'this engine has no relaxed SIMD');
    }
    if (variant.endsWith('-mt') && shared !== undefined)
      throw unsupported('variant', variant, shared);
    why.push(`build ${variant} was asked for`);
  } else {
    why.push(
      hasRelaxed
        ? 'relaxed SIMD is available'
        : 'relaxed SIMD is not available, so 128-bit SIMD is used',
    );
  }
  if (typeof wanted === 'number' && wanted > 1 && shared !== undefined) {
    throw unsupported('threads', String(wanted), shared);
  }

  let threads = wanted === 'auto' ? automaticThreads(await processors()) : wanted;
  if (shared !== undefined) threads = 1;
  if (options.variant !== undefined && !options.variant.endsWith('-mt')) threads = 1;
  why.push(
    shared !== undefined
      ? `one thread: ${shared}`
      : wanted === 'auto'
        ? `${threads} thread${threads === 1 ? '' : 's'}: one per core, up to ${MAX_AUTO_THREADS}, with a core left free where there are more than two`
        : `${threads} thread${threads === 1 ? '' : 's'} ${threads === 1 ? 'was' : 'were'} asked for`,
  );
  const level = hasRelaxed ? 'relaxed' : 'simd';
  return { variant: options.variant ?? (threads > 1 ? `${level}-mt` : level), threads, why };
}

function unsupported(
  field: string,
  value: string,
  message: string,
): KvLensError<'unsupported_environment'> {
  return new KvLensError(
    'unsupported_environment',
    { field, value, allowed: 'what this engine has' },
    message,
  );
}

/**
 * Node 20 (V8 11.3) has relaxed SIMD behind a flag. Until its optimising compiler has replaced what
 * the baseline one made, relaxed dot products come out wrong there; later versions have it without
 * a flag and right.
 */
function baselineDotsAreWrong(): boolean {
  const v8 = (globalThis as { process?: { versions?: { v8?: string } } }).process?.versions?.v8;
  const [major = 0, minor = 0] = (v8 ?? '99').split('.').map(Number);
  return major < 11 || (major === 11 && minor < 4);
}

/** Why memory cannot be shared between threads here; undefined when it can. */
async function sharingObstacle(): Promise<string | undefined> {
  // A page has to ask for isolation by two headers; Node and workers of an isolated page have it.
  if ((globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === false) {
    return 'the page is not cross-origin isolated (headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp)';
  }
  return (await sharedThreads()) ? undefined : 'this engine has no WebAssembly threads';
}

async function processors(): Promise<number> {
  const { hardwareConcurrency } = globalThis.navigator ?? {};
  if (hardwareConcurrency !== undefined) return hardwareConcurrency;
  // Node 20 has no navigator. The name is kept from bundlers, which would look for it.
  const os = 'node:os';
  const { availableParallelism } = (await import(
    /* @vite-ignore */ /* webpackIgnore: true */ os
  )) as {
    availableParallelism: () => number;
  };
  return availableParallelism();
}
