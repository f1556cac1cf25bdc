/**
 * The synchronous level, `kvlens/core`: for Node, tests and your own worker.
 *
 * Every failure throws a `KvLensError`. A call that throws leaves everything as it was, unless its
 * comment says otherwise. Results are copies and stay valid. A handle holds memory of the module
 * until you call `dispose()`; you may call it again, and any other use after it throws `disposed`.
 * If the module traps, every later call throws `module_aborted`, and you need a fresh `loadCore()`.
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

/** An object that holds memory of the module. */
export interface Handle extends Disposable {
  /** Frees the memory. Calling it again does nothing. */
  dispose(): void;
  /** Whether `dispose` has been called. */
  readonly disposed: boolean;
}

/** One instance of the WebAssembly module. */
export interface Core extends Disposable {
  /** Which build runs, on how many threads, and why. */
  readonly info: ModuleInfo;

  /**
   * Builds a model from all of its parameters, which may come in any order. Errors: those of
   * `ModelBuilder`.
   */
  createModel(config: ConfigInput, parameters: Iterable<ParameterInput>): Model;
  /** Builds a model one parameter at a time. Errors: invalid_config, size_overflow. */
  modelBuilder(config: ConfigInput): ModelBuilder;
  /**
   * Makes a random decoder: Xavier-uniform matrices drawn in the order of `parameterSpecs`, gains
   * of 1, biases of 0. Moves `rng`. Errors: invalid_config, out_of_memory; `rng` is then unchanged.
   */
  randomModel(
    config: ConfigInput,
    options: { readonly rng: Rng; readonly dtype?: 'f64' | 'f32' },
  ): Model;
  /**
   * Makes an empty cache for `model`. Errors: zero_capacity, capacity_exceeds_max_seq_len,
   * invalid_argument (`kvDtype` does not fit `compute` or `headDim`), size_overflow, out_of_memory.
   */
  createCache<C extends ComputeType = 'f32'>(model: Model, options?: CacheOptions<C>): KvCache<C>;
  /**
   * Binds `model` to `cache` as a session. Neither can be disposed of before the session
   * (`model_in_use`, `cache_in_use`). Errors: config_mismatch and the other binding errors of the
   * core, out_of_memory; neither is held then.
   */
  bind<C extends ComputeType>(
    model: Model,
    cache: KvCache<C>,
    options?: SessionOptions,
  ): Session<C>;
  /**
   * Makes a cache and binds `model` to it. The session owns the cache and disposes of it. Errors:
   * those of `createCache` and `bind`.
   */
  createSession<C extends ComputeType = 'f32'>(
    model: Model,
    options?: CacheOptions<C> & SessionOptions,
  ): Session<C>;

  /** Lists every parameter that `config` requires, in the core's order. Errors: invalid_config. */
  parameterSpecs(config: ConfigInput): ParameterSpec[];
  /**
   * Compares the work of two schedules of the same prefixes, after checking each one's counters
   * against the formula. Errors: count_mismatch, cached_exceeds_replay, work_overflow,
   * invalid_argument.
   */
  contrast(config: Config, cached: Schedule, replay: Schedule): Contrast;
  /** Counts the handles and the memory of this instance. */
  memory(): MemoryInfo;
  /** Ends the threads, if there are any. Nothing made by this instance can be used afterwards. */
  dispose(): void;
}

/** One parameter of a model, with its values. */
export interface ParameterInput {
  readonly name: string;
  /** How `data` stores the values. */
  readonly dtype: DType;
  /** The bytes, row-major: one row for each output. */
  readonly data: ArrayBufferView | ArrayBuffer;
  /**
   * The shape that the caller expects. If it is given, it is checked against the configuration.
   * Errors: parameter_shape_mismatch.
   */
  readonly shape?: readonly number[];
}

/** Options of `Core.createCache`. */
export interface CacheOptions<C extends ComputeType = ComputeType> {
  /** Number of rows that a layer can hold, `1..maxSeqLen`. The default is `maxSeqLen`. */
  readonly capacity?: number;
  /** Precision of the session's arithmetic. The default is `f32`. */
  readonly compute?: C;
  /** Storage type of keys and values. The default is `compute`. */
  readonly kvDtype?: KvDType;
}

/** Options of `Core.bind`. */
export interface SessionOptions {
  /** Number of rows computed together. The default is 64. Results do not depend on it. */
  readonly chunkRows?: number;
}

/** Builds a model parameter by parameter: bytes are written straight to where they stay. */
export interface ModelBuilder extends Handle {
  /** Every parameter that the configuration requires, in the core's order. */
  readonly specs: readonly ParameterSpec[];
  /**
   * Allocates memory for one parameter and returns its size in bytes. Fill it with `write`, then
   * `seal` it. Errors: unknown_parameter, duplicate_parameter, unsupported_dtype, out_of_memory.
   */
  allocate(name: string, dtype: DType): number;
  /**
   * Copies `bytes` into an allocated parameter, `offset` bytes from its start. Errors:
   * missing_parameter (not allocated, or already sealed), parameter_size_mismatch (past the end).
   */
  write(name: string, offset: number, bytes: Uint8Array): void;
  /**
   * Checks that every byte was written and every value or block scale is finite, and packs the
   * parameter for the kernels. Errors: missing_parameter; parameter_size_mismatch, after which
   * writing can continue; non_finite_parameter and out_of_memory, after which the parameter can be
   * allocated again.
   */
  seal(name: string): void;
  /** Allocates, writes and seals one parameter. Errors: those of the three. */
  add(parameter: ParameterInput): void;
  /**
   * Returns the model and disposes of the builder. Errors: missing_parameter; the builder is
   * unchanged.
   */
  finish(): Model;
}

/** A configuration and its parameters. */
export interface Model extends Handle {
  /** The shape of the decoder. */
  readonly config: Config;
  /**
   * Identifies the configuration and the parameters' names, storage types and bytes. It is the same
   * on every machine.
   */
  readonly hash: string;
  /** Number of sessions that hold the model now. */
  readonly liveSessions: number;
  /** Size of all parameters, in bytes. */
  readonly parameterBytes: number;
  /** Lists the parameters as they are stored now, in the core's order. */
  parameters(): ParameterInfo[];
  /**
   * Returns rows `[rowBegin, rowBegin + nRows)` of a parameter, dequantised, as `[nRows, cols]`; a
   * vector is one row. Errors: unknown_parameter, invalid_argument.
   */
  readRows(name: string, rowBegin: number, nRows: number): Float64Array<ArrayBuffer>;
  /**
   * Replaces a parameter and increments its revision, so caches made before no longer bind.
   * Errors: parameter_borrowed (a session holds the model), unknown_parameter,
   * parameter_size_mismatch, unsupported_dtype, non_finite_parameter, out_of_memory.
   */
  updateParameter(parameter: ParameterInput): void;
  /** Frees the model. Errors: model_in_use while a session holds it. */
  dispose(): void;
}

/** The keys and values of all layers. */
export interface KvCache<C extends ComputeType = ComputeType> extends Handle {
  /** Precision in which sessions on this cache compute. */
  readonly compute: C;
  /** Storage type of keys and values. Reading them returns floats of `compute`, exactly. */
  readonly kvDtype: KvDType;
  /** Configuration of the model that the cache was made for. */
  readonly config: Config;
  /** Number of rows that each layer holds now. */
  readonly len: number;
  /** Number of rows that a layer can hold. */
  readonly capacity: number;
  /** Bytes allocated for keys and values. */
  readonly bytes: number;
  /** Number of layers. */
  readonly nLayers: number;
  /** Returns the token ids of the rows, `[len]`. */
  tokens(): Uint32Array<ArrayBuffer>;
  /** Returns one layer. Errors: invalid_argument. */
  layer(index: number): LayerKvCache<C>;
  /**
   * Returns `layer(i).contentHash(nRows)` of every layer. The default of `nRows` is `len`. Errors:
   * invalid_length.
   */
  contentHashes(nRows?: number): string[];
  /**
   * Returns `contentHashes` for each of several lengths, in one pass over the rows. Errors:
   * invalid_length.
   */
  prefixHashes(lengths: readonly number[]): string[][];
  /** Frees the cache. Errors: cache_in_use while a session is bound to it. */
  dispose(): void;
}

/** One layer of a cache. It can be used as long as the cache. */
export interface LayerKvCache<C extends ComputeType = ComputeType> {
  /** Number of the layer, from 0. */
  readonly index: number;
  /** Number of rows that the layer holds now. */
  readonly len: number;
  /**
   * Copies the rotated keys of one head, `[len, headDim]`, or without `kvHead` those of all heads,
   * `[nKvHeads, len, headDim]`. Errors: invalid_argument, out_of_memory.
   */
  keys(kvHead?: number): FloatArray<C>;
  /** Copies values, in the shapes that `keys` has. Errors: invalid_argument, out_of_memory. */
  values(kvHead?: number): FloatArray<C>;
  /** Copies the rotated key of one head at one position, `[headDim]`. Errors: invalid_argument. */
  keyRow(kvHead: number, position: number): FloatArray<C>;
  /** Copies the value of one head at one position, `[headDim]`. Errors: invalid_argument. */
  valueRow(kvHead: number, position: number): FloatArray<C>;
  /**
   * Hashes (XXH64) the bytes of the first `nRows` rows as they are now. The default of `nRows` is
   * `len`. Errors: invalid_length.
   */
  contentHash(nRows?: number): string;
}

/** One model bound to one cache. */
export interface Session<C extends ComputeType = ComputeType> extends Handle {
  readonly model: Model;
  readonly cache: KvCache<C>;
  /** Precision of the arithmetic. */
  readonly compute: C;
  /** Number of rows that the cache holds now. */
  readonly kvLen: number;
  /** Number of rows that the cache can hold. */
  readonly capacity: number;
  /** Number of rows computed together. */
  readonly chunkRows: number;

  /**
   * Runs several tokens through the model, on an empty cache. Errors: call_in_progress, not_empty,
   * empty_prompt, prompt_exceeds_capacity, token_out_of_range, non_finite_value, out_of_memory,
   * work_overflow.
   */
  prefill(tokens: TokenIds, options?: StepOptions): Step<C>;
  /**
   * Runs one token, after a prefill. Errors: those of prefill, not_prefilled, cache_full.
   */
  decode(token: number, options?: StepOptions): Step<C>;
  /**
   * Runs several tokens, after a prefill. They count as decode tokens. Errors: those of decode.
   */
  extend(tokens: TokenIds, options?: StepOptions): Step<C>;

  /**
   * Begins a prefill or an extend in steps, for progress and abort, and checks all arguments. Then
   * call `advance` until it returns 0, and `finish`. Nothing changes before `finish`, and every
   * other call throws `call_in_progress`. Errors: those of the call; no call is open then.
   */
  begin(phase: 'prefill' | 'extend', tokens: TokenIds, options?: StepOptions): void;
  /**
   * Computes up to `chunkRows` more rows of the open call and returns how many are left. Errors:
   * no_call_in_progress, non_finite_value; the call is then abandoned.
   */
  advance(): number;
  /**
   * Computes the rows that are left and the logits, and commits the open call. Errors: those of
   * `advance`, work_overflow; the call is then abandoned.
   */
  finish(): Step<C>;
  /** Drops the open call and leaves no trace of it. Does nothing if none is open. */
  abandon(): void;
  /** Whether a call has begun and has not finished. */
  readonly callInProgress: boolean;

  /**
   * Runs a complete forward pass over `tokens` (by default the session's own) without the cache.
   * The session is not changed. Errors: call_in_progress, empty_prompt, prompt_exceeds_capacity
   * (more than `maxSeqLen`), token_out_of_range, out_of_memory, non_finite_value.
   */
  replay(options?: ReplayOptions): Replay<C>;
  /**
   * Begins a replay in steps, for progress and abort. Calls that the session makes meanwhile do not
   * affect it; disposing of the session ends it. Errors: those of replay, without non_finite_value.
   */
  beginReplay(options?: ReplayOptions): StepwiseReplay<C>;
  /**
   * Replays the session's tokens and compares the logits byte by byte. Errors: as replay;
   * no_logits.
   */
  verify(): Verification;

  /**
   * Keeps the first `len` rows, `1..kvLen`, and drops the others and the logits. The counters stay.
   * Errors: invalid_length, call_in_progress.
   */
  truncate(len: number): void;
  /** Drops every row and abandons an open call. The counters go on from where they are. */
  clear(): void;
  /** Drops every row, sets all counters to zero, and abandons an open call. */
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

  /** Returns the counters of all work since binding or `reset`. */
  work(): Work;
  /** Returns the token ids of the rows, `[kvLen]`. */
  tokens(): Uint32Array<ArrayBuffer>;
  /** Copies the logits after the last row, `[vocabSize]`. Errors: no_logits. */
  logits(): FloatArray<C>;
  /** Returns the logit of one token. Errors: no_logits, token_out_of_range. */
  logit(token: number): number;
  /** Whether the session has logits. After binding, `reset`, `clear` and `truncate` it has none. */
  readonly hasLogits: boolean;
  /** The call that computed the logits, if the session has any and `generate` was not that call. */
  readonly lastStep: StepInfo | undefined;
  /**
   * Returns the lengths and the work of the prefill and the decodes since binding or `reset`.
   * Errors: no_schedule (no call yet, or another call than these).
   */
  schedule(): Schedule;
  /**
   * Measures the work that the cache avoided: compares `schedule()` with a real replay of each of
   * its prefixes. Errors: no_schedule, and those of `replay` and `Core.contrast`.
   */
  contrast(): Contrast;

  /** Returns the `n` likeliest next tokens, likeliest first, ties by id. Errors: no_logits. */
  topTokens(n: number): RankedToken[];
  /**
   * Chooses the next token without decoding it. A greedy choice needs no `rng`. The repetition
   * penalty applies to `recent`, by default the session's tokens. Errors: no_logits,
   * invalid_sampling, non_finite_value; `rng` is then unchanged.
   */
  sample(sampling: SamplingOptions, rng?: Rng, recent?: TokenIds): Draw;
  /**
   * Prefills the prompt, then samples and decodes until a reason to stop. Errors: those of prefill,
   * decode and sample; the session and `rng` are then unchanged.
   */
  generate(request: GenerateRequest): Generation;
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
 * A replay in progress; see `Session.beginReplay`. Disposing of it ends it. It never changes the
 * session.
 */
export interface StepwiseReplay<C extends ComputeType = ComputeType> extends Handle {
  /**
   * Number of steps of the whole replay. A step takes up to `chunkRows` rows through the embedding,
   * one layer, or the vocabulary head.
   */
  readonly nSteps: number;
  /**
   * Computes one step, if any is left, and returns how many are left. Errors: non_finite_value; the
   * replay is then disposed of.
   */
  advance(): number;
  /**
   * Computes the remaining steps, returns the result and disposes of the replay. `milliseconds` is
   * the time spent in its calls. Errors: non_finite_value, out_of_memory (for the results).
   */
  finish(): Replay<C>;
}

/** Options of `Session.replay`. */
export interface ReplayOptions extends CaptureOptions {
  /** Token ids to run. The default is the session's tokens. */
  readonly tokens?: TokenIds;
  /** Whether to return logits after every token, not only the last. The default is false. */
  readonly allLogits?: boolean;
}

/** What `Session.generate` is to do. */
export interface GenerateRequest {
  /** Token ids to begin with. */
  readonly prompt: TokenIds;
  /** Largest number of tokens to generate. With 0, nothing is computed. */
  readonly maxNewTokens: number;
  /** Token id that ends the generation. */
  readonly eosToken?: number;
  /** How tokens are chosen. The default is greedy. */
  readonly sampling?: SamplingOptions;
  /** Random generator to draw from; required when `temperature` is above 0. */
  readonly rng?: Rng;
}

/** The result of `Session.generate`. */
export interface Generation {
  /** The generated token ids, EOS included. */
  readonly tokens: Uint32Array<ArrayBuffer>;
  /** Why it stopped. If several reasons apply, it is the first of this list. */
  readonly stop: 'eos' | 'token_limit' | 'context_limit';
  /** For each generated token, the number of tokens before it and how it was chosen. */
  readonly steps: readonly { readonly prefixLength: number; readonly draw: Draw }[];
  /** Work done by this call alone. */
  readonly work: Work;
}
