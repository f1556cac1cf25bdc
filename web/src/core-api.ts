/**
 * The synchronous level, `kvlens/core`: for Node, tests and one's own worker.
 *
 * Every failure throws a `KvLensError`, and a call that throws leaves everything as it was unless
 * its comment says otherwise. Results are copies and stay valid. Handles hold memory of the module
 * until `dispose()`, which may be called again; any other use after it is the error `disposed`.
 * After a trap of the module every call is the error `module_aborted`; a fresh `loadCore()` works.
 */
import type {
  CaptureOptions,
  ComputeType,
  Config,
  ConfigInput,
  Contrast,
  Draw,
  DType,
  FloatArray,
  KvDType,
  MemoryInfo,
  ModuleInfo,
  ParameterInfo,
  ParameterSpec,
  RankedToken,
  Replay,
  Rng,
  SamplingOptions,
  Schedule,
  Step,
  StepInfo,
  StepOptions,
  TokenIds,
  Verification,
  Work,
} from './types.js';

/** Something that holds memory of the module. */
export interface Handle extends Disposable {
  /** Gives the memory back. Calling it again does nothing. */
  dispose(): void;
  readonly disposed: boolean;
}

/** One instance of the module. */
export interface Core extends Disposable {
  readonly info: ModuleInfo;

  /**
   * A model from all of its parameters at once, row-major bytes in the order of `parameterSpecs`.
   * Errors: those of `ModelBuilder`.
   */
  createModel(config: ConfigInput, parameters: Iterable<ParameterInput>): Model;
  /** Builds a model one parameter at a time. Errors: invalid_config, size_overflow. */
  modelBuilder(config: ConfigInput): ModelBuilder;
  /**
   * A random decoder: Xavier-uniform matrices drawn in the order of `parameterSpecs`, gains 1,
   * biases 0. Errors: invalid_config, out_of_memory; `rng` is then as it was.
   */
  randomModel(
    config: ConfigInput,
    options: { readonly rng: Rng; readonly dtype?: 'f64' | 'f32' },
  ): Model;
  /**
   * An empty cache for `model`. `capacity` is the rows a layer can hold, `maxSeqLen` by default.
   * Errors: zero_capacity, capacity_exceeds_max_seq_len, invalid_argument (a `kvDtype` that does
   * not go with `compute` or `headDim`), size_overflow, out_of_memory.
   */
  createCache<C extends ComputeType = 'f32'>(model: Model, options?: CacheOptions<C>): KvCache<C>;
  /**
   * A session of `model` on `cache`, which it keeps usable: both can be disposed of only after it
   * (`model_in_use`, `cache_in_use`). Errors: config_mismatch and the other binding errors of the
   * core, out_of_memory; nothing is held then.
   */
  bind<C extends ComputeType>(
    model: Model,
    cache: KvCache<C>,
    options?: SessionOptions,
  ): Session<C>;
  /** `createCache` and `bind`; the session owns the cache and disposes of it. */
  createSession<C extends ComputeType = 'f32'>(
    model: Model,
    options?: CacheOptions<C> & SessionOptions,
  ): Session<C>;

  /** Every parameter that `config` calls for, in order. Errors: invalid_config. */
  parameterSpecs(config: ConfigInput): ParameterSpec[];
  /**
   * Measured against formula, for both schedules. Errors: count_mismatch, cached_exceeds_replay,
   * work_overflow, invalid_argument.
   */
  contrast(config: Config, cached: Schedule, replay: Schedule): Contrast;
  /** What is alive, over all handles of this instance. */
  memory(): MemoryInfo;
  /** Ends the threads, if there are any. Nothing of this instance can be used afterwards. */
  dispose(): void;
}

/** The bytes of one parameter, row-major. */
export interface ParameterInput {
  readonly name: string;
  readonly dtype: DType;
  readonly data: ArrayBufferView | ArrayBuffer;
  /**
   * Compared with what the configuration calls for when it is given. Errors:
   * parameter_shape_mismatch.
   */
  readonly shape?: readonly number[];
}

/** See `Core.createCache`. */
export interface CacheOptions<C extends ComputeType = ComputeType> {
  /** Rows a layer can hold, `1..maxSeqLen`. */
  readonly capacity?: number;
  /** `f32` by default. */
  readonly compute?: C;
  /** What keys and values are stored as; `compute`'s own type by default. */
  readonly kvDtype?: KvDType;
}

/** See `Core.bind`. */
export interface SessionOptions {
  /** Rows advanced together, 64 by default. Results do not depend on it. */
  readonly chunkRows?: number;
}

/** Builds a model so that bytes stream to where they stay. */
export interface ModelBuilder extends Handle {
  readonly specs: readonly ParameterSpec[];
  /**
   * Memory for one parameter, to be filled by `write` and sealed. Returns its size in bytes.
   * Errors: unknown_parameter, duplicate_parameter, unsupported_dtype, out_of_memory.
   */
  allocate(name: string, dtype: DType): number;
  /**
   * Copies `bytes` to `offset` of an allocated parameter. Errors: missing_parameter (not allocated,
   * or sealed), parameter_size_mismatch (past its end).
   */
  write(name: string, offset: number, bytes: Uint8Array): void;
  /**
   * Checks a parameter (as many bytes written as it has, every value or block scale finite) and
   * packs it. Errors: missing_parameter; parameter_size_mismatch, and writing can go on;
   * non_finite_parameter and out_of_memory, and the parameter is dropped and can be allocated anew.
   */
  seal(name: string): void;
  /** allocate, write, seal. */
  add(parameter: ParameterInput): void;
  /** The model; the builder is then disposed of. Errors: missing_parameter; the builder goes on. */
  finish(): Model;
}

/** A configuration and its parameters. */
export interface Model extends Handle {
  readonly config: Config;
  /** Identifies configuration, names, storage types and bytes; the same on every machine. */
  readonly hash: string;
  /** Sessions that hold it now. */
  readonly liveSessions: number;
  /** Bytes of all parameters. */
  readonly parameterBytes: number;
  /** Returns the parameters as they are stored now, in the order of `parameterSpecs`. */
  parameters(): ParameterInfo[];
  /**
   * Rows `[rowBegin, rowBegin + nRows)` of a parameter, dequantised, `[nRows, cols]`; a vector is
   * one row. Errors: unknown_parameter, invalid_argument.
   */
  readRows(name: string, rowBegin: number, nRows: number): Float64Array<ArrayBuffer>;
  /**
   * Replaces a parameter and bumps its revision, so that a cache made before no longer binds.
   * Errors: parameter_borrowed (a session is alive), unknown_parameter, parameter_size_mismatch,
   * unsupported_dtype, non_finite_parameter, out_of_memory.
   */
  updateParameter(parameter: ParameterInput): void;
  /** Errors: model_in_use while a session holds it. */
  dispose(): void;
}

/** The keys and values of all layers. */
export interface KvCache<C extends ComputeType = ComputeType> extends Handle {
  readonly compute: C;
  /** What keys and values are stored as. Reading them gives floats of `compute`, exactly. */
  readonly kvDtype: KvDType;
  readonly config: Config;
  /** Rows held. */
  readonly len: number;
  /** Rows that a layer can hold. */
  readonly capacity: number;
  /** Bytes allocated for keys and values. */
  readonly bytes: number;
  readonly nLayers: number;
  /** Ids of the rows, `[len]`. */
  tokens(): Uint32Array<ArrayBuffer>;
  /** Errors: invalid_argument. */
  layer(index: number): LayerKvCache<C>;
  /**
   * `layer(i).contentHash(nRows)` of every layer; `nRows` is `len` by default. Errors:
   * invalid_length.
   */
  contentHashes(nRows?: number): string[];
  /**
   * `contentHashes` of each of several lengths, in one pass over the rows. Errors: invalid_length.
   */
  prefixHashes(lengths: readonly number[]): string[][];
  /** Errors: cache_in_use while a session is bound to it. */
  dispose(): void;
}

/** One layer of a cache; valid while the cache is. */
export interface LayerKvCache<C extends ComputeType = ComputeType> {
  readonly index: number;
  /** Rows held. */
  readonly len: number;
  /** Rotated keys of one head (`[len, headDim]`), or of all heads (`[nKvHeads, len, headDim]`). */
  keys(kvHead?: number): FloatArray<C>;
  /** As `keys`. */
  values(kvHead?: number): FloatArray<C>;
  /** The key of one head at one position, `[headDim]`. Errors: invalid_argument. */
  keyRow(kvHead: number, position: number): FloatArray<C>;
  /** As `keyRow`. */
  valueRow(kvHead: number, position: number): FloatArray<C>;
  /**
   * A hash (XXH64) of the bytes of the first `nRows` rows (`len` by default), as they are now.
   * Errors: invalid_length.
   */
  contentHash(nRows?: number): string;
}

/** One model bound to one cache. */
export interface Session<C extends ComputeType = ComputeType> extends Handle {
  readonly model: Model;
  readonly cache: KvCache<C>;
  readonly compute: C;
  readonly kvLen: number;
  readonly capacity: number;
  readonly chunkRows: number;

  /**
   * Several tokens on an empty cache. Errors: call_in_progress, not_empty, empty_prompt,
   * prompt_exceeds_capacity, token_out_of_range, non_finite_value, out_of_memory, work_overflow.
   */
  prefill(tokens: TokenIds, options?: StepOptions): Step<C>;
  /** One token onto a filled cache. Errors: as prefill, not_prefilled, cache_full. */
  decode(token: number, options?: StepOptions): Step<C>;
  /** Several tokens onto a filled cache; they count as decode tokens. Errors: as decode. */
  extend(tokens: TokenIds, options?: StepOptions): Step<C>;

  /**
   * The same calls in steps, for progress and abort: `begin` checks everything, `advance` computes
   * up to `chunkRows` further rows and returns how many are left, `finish` commits. Until then
   * nothing of it can be seen, and every other call is `call_in_progress`. An error abandons the
   * call.
   */
  begin(phase: 'prefill' | 'extend', tokens: TokenIds, options?: StepOptions): void;
  /**
   * Computes up to `chunkRows` further rows of the open call and returns how many rows are left.
   * Errors: no_call_in_progress; those of the forward pass, which abandon the call.
   */
  advance(): number;
  /**
   * Computes what is left of the open call and commits it. Errors: as `advance`, work_overflow; the
   * call is then abandoned.
   */
  finish(): Step<C>;
  /** Drops the call that is open, without a trace. */
  abandon(): void;
  readonly callInProgress: boolean;

  /**
   * Complete-prefix forward over `tokens` (the session's own by default), without the cache and
   * without touching it. Errors: call_in_progress, empty_prompt, prompt_exceeds_capacity
   * (maxSeqLen), token_out_of_range, out_of_memory, non_finite_value.
   */
  replay(options?: ReplayOptions): Replay<C>;
  /**
   * The same in steps, for progress and abort. Calls of the session made meanwhile are no part of
   * it; disposing of the session ends it. Errors: as replay, without non_finite_value.
   */
  beginReplay(options?: ReplayOptions): StepwiseReplay<C>;
  /**
   * Replays the session's tokens and compares the logits byte by byte. Errors: as replay;
   * no_logits.
   */
  verify(): Verification;

  /**
   * Keeps the first `len` rows; the logits are gone until the next call. Errors: invalid_length.
   */
  truncate(len: number): void;
  /** Drops every row and abandons an open call. The counters go on from where they are. */
  clear(): void;
  /** As freshly bound: no rows, counters zero; an open call is abandoned. */
  reset(): void;

  /**
   * Marks the present state as one to return to with `rollback`. This copies the logits and the
   * token ids. Rows are copied only when a later call is about to write over them (after
   * `truncate`, `clear` or `reset`), so appending tokens costs nothing, and the copies take at most
   * as many bytes as the rows held now. Such a call can fail with `out_of_memory` before it begins.
   * Errors: call_in_progress, out_of_memory; the session is unchanged.
   */
  savepoint(): Savepoint<C>;
  /**
   * Returns to a savepoint of this session: rows, tokens, logits, counters and `lastStep` are
   * exactly what they were, without computing anything. Abandons an open call, keeps `savepoint`
   * usable and ends every savepoint made after it. Errors: invalid_argument (not made by this
   * session), call_in_progress (a call of another session on the same cache is open),
   * savepoint_ended; the session is unchanged.
   */
  rollback(savepoint: Savepoint<C>): void;

  /** Since binding or `reset`. */
  work(): Work;
  /** Ids of the rows held. */
  tokens(): Uint32Array<ArrayBuffer>;
  /** After the last row, `[vocabSize]`, a copy. Errors: no_logits. */
  logits(): FloatArray<C>;
  /** One of them. Errors: no_logits, token_out_of_range. */
  logit(token: number): number;
  readonly hasLogits: boolean;
  /** The call that gave the logits; none after binding, `reset` and `truncate`. */
  readonly lastStep: StepInfo | undefined;
  /**
   * Prefill and decodes since binding or `reset`. Errors: no_schedule (nothing yet, or `extend` or
   * `truncate`).
   */
  schedule(): Schedule;
  /**
   * What the cache avoided: `schedule()` against a replay of each of its prefixes, run for real.
   * Errors: no_schedule, those of replay and of `Core.contrast`.
   */
  contrast(): Contrast;

  /** The `n` likeliest next tokens, likeliest first, ties by id. Errors: no_logits. */
  topTokens(n: number): RankedToken[];
  /**
   * Chooses the next token; a greedy choice needs no `rng`. The repetition penalty applies to
   * `recent`, by default the session's tokens. Errors: no_logits, invalid_sampling,
   * non_finite_value; `rng` is then as it was.
   */
  sample(sampling: SamplingOptions, rng?: Rng, recent?: TokenIds): Draw;
  /**
   * Prefill, then sample and decode until a stop. Errors: those of prefill, decode and sample; the
   * session and `rng` are then as before.
   */
  generate(request: GenerateRequest): Generation;
  /** The same tokens from complete-prefix replays, without the cache. */
  generateUncached(request: GenerateRequest): Generation;
}

/**
 * A state of a session that it can return to; see `Session.savepoint`. Dispose of it when it is no
 * longer needed: this frees its copies and leaves the session as it is. Disposing of the session
 * disposes of its savepoints.
 */
export interface Savepoint<C extends ComputeType = ComputeType> extends Handle {
  readonly session: Session<C>;
}

/**
 * See `Session.beginReplay`. Disposing of it gives it up; nothing but its own memory is ever
 * touched.
 */
export interface StepwiseReplay<C extends ComputeType = ComputeType> extends Handle {
  /**
   * Of the whole: each is up to `chunkRows` rows through the embedding, one layer, or the
   * vocabulary head.
   */
  readonly nSteps: number;
  /**
   * Computes one step, if any is left, and returns how many are left then. Errors:
   * non_finite_value; the replay is then disposed of.
   */
  advance(): number;
  /**
   * Computes what is left; the replay is then disposed of. `milliseconds` are those spent in its
   * calls. Errors: non_finite_value, out_of_memory (for the results).
   */
  finish(): Replay<C>;
}

/** See `Session.replay`. */
export interface ReplayOptions extends CaptureOptions {
  readonly tokens?: TokenIds;
  /** Logits after every token instead of the last alone. */
  readonly allLogits?: boolean;
}

/** See `Session.generate`. */
export interface GenerateRequest {
  readonly prompt: TokenIds;
  /** 0 does no work. */
  readonly maxNewTokens: number;
  readonly eosToken?: number;
  readonly sampling?: SamplingOptions;
  /** Needed when `temperature` is above 0. */
  readonly rng?: Rng;
}

/** See `Session.generate`. */
export interface Generation {
  /** New ones, EOS included. */
  readonly tokens: Uint32Array<ArrayBuffer>;
  /** EOS before the token limit before the context limit. */
  readonly stop: 'eos' | 'token_limit' | 'context_limit';
  readonly steps: readonly { readonly prefixLength: number; readonly draw: Draw }[];
  readonly work: Work;
}
