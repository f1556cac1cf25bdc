/**
 * The plain values of both levels of the package: every one of them survives `structuredClone`.
 *
 * Names are the core's own in camelCase. Token ids, lengths and counters are numbers, exact up to
 * 2^53 - 1 (a counter beyond it is the error `work_overflow`); hashes are 16 hexadecimal digits;
 * the state of the random generator is a bigint.
 */

/** How two elements of a head are paired by RoPE: `(2i, 2i+1)` or `(i, i + headDim / 2)`. */
export type RopePairing = 'interleaved' | 'half_split';

/** Rotary position embedding (RoPE): how queries and keys are rotated by their position. */
export interface RopeSpec {
  /** Which elements of a head form a pair. The default is `interleaved`. */
  readonly pairing: RopePairing;
  /** Base of the rotation frequencies. The default is 10000. */
  readonly theta: number;
  /** Divisors of the pairs' frequencies, `[headDim / 2]`. Empty, the default, for none. */
  readonly freqFactors: readonly number[];
}

/** The shape of a Llama-family decoder. */
export interface Config {
  /** Number of decoder layers. */
  readonly nLayers: number;
  /** Number of query heads; a multiple of `nKvHeads`. */
  readonly nHeads: number;
  /** Number of key and value heads. Each serves `nHeads / nKvHeads` query heads. */
  readonly nKvHeads: number;
  /** Width of a head. It is even and need not be `dModel / nHeads`. */
  readonly headDim: number;
  /** Width of the residual stream. */
  readonly dModel: number;
  /** Width of the hidden layer of the feed-forward block. */
  readonly dFf: number;
  /** Number of token ids, which are `0..vocabSize - 1`. */
  readonly vocabSize: number;
  /** Number of positions that the model supports. */
  readonly maxSeqLen: number;
  /** Added to the mean square in every RMSNorm. The default is 1e-5. */
  readonly rmsNormEps: number;
  /** How queries and keys are rotated. */
  readonly rope: RopeSpec;
  /** Whether the q, k and v projections have a bias. The default is false. */
  readonly qkvBias: boolean;
  /** Whether every query and key head is normalised with its own gain. The default is false. */
  readonly qkNorm: boolean;
  /** Whether the vocabulary head is the token embedding. The default is true. */
  readonly tiedEmbedding: boolean;
  /** Number of positions that a row attends to, its own included; 0 (the default) for all. */
  readonly slidingWindow: number;
}

/**
 * A configuration to build from. The dimensions and `maxSeqLen` are required; every other field has
 * the default that its comment in `Config` and `RopeSpec` gives.
 */
export type ConfigInput = Pick<
  Config,
  'nLayers' | 'nHeads' | 'nKvHeads' | 'headDim' | 'dModel' | 'dFf' | 'vocabSize' | 'maxSeqLen'
> &
  Partial<Pick<Config, 'rmsNormEps' | 'qkvBias' | 'qkNorm' | 'tiedEmbedding' | 'slidingWindow'>> & {
    /** How queries and keys are rotated; each part has its own default. */
    readonly rope?: Partial<RopeSpec>;
  };

/**
 * Storage types of parameters, in the order of the core's table: plain floats, then ggml blocks.
 */
export const DTYPES = [
  'f64',
  'f32',
  'f16',
  'bf16',
  'q8_0',
  'q4_0',
  'q4_1',
  'q5_0',
  'q5_1',
  'q2_k',
  'q3_k',
  'q4_k',
  'q5_k',
  'q6_k',
] as const;

/** A storage type of parameters. */
export type DType = (typeof DTYPES)[number];

/**
 * Precision of a session's arithmetic and cache: single, for use, or double, as the reference.
 */
export type ComputeType = 'f32' | 'f64';

/**
 * Storage type of a cache's keys and values: the compute type or, if that is `f32`, also `bf16`
 * (half the bytes) or `q8_0` (17/64 of the bytes; every 32 values share a scale, so `headDim` must
 * be a multiple of 32, at most 512). With `bf16` and `q8_0`, attention reads the rounded keys and
 * values that the cache shows; captured `k_rope` and `v_projection` show them before rounding. With
 * `q8_0`, attention also rounds queries, and weights times scales, to 16 bits.
 */
export type KvDType = ComputeType | 'bf16' | 'q8_0';

/** The typed array of a compute type. It always has its own memory. */
export type FloatArray<C extends ComputeType = ComputeType> = C extends 'f64'
  ? Float64Array<ArrayBuffer>
  : Float32Array<ArrayBuffer>;

/** Token ids as callers give them: integers in `0..vocabSize - 1`. */
export type TokenIds = readonly number[] | Uint32Array;

/** A dense row-major tensor; `data.length` is the product of `shape`. */
export interface Tensor<C extends ComputeType = ComputeType> {
  readonly data: FloatArray<C>;
  readonly shape: readonly number[];
}

/** One parameter of a model as it is stored. */
export interface ParameterInfo {
  readonly name: string;
  readonly dtype: DType;
  /** Its shape: `[rows, cols]`, or `[cols]` for a vector. */
  readonly shape: readonly number[];
  /** Size of the stored bytes. */
  readonly bytes: number;
  /** Number of updates since the model was made. */
  readonly revision: number;
}

/** The name and shape that a configuration requires of a parameter. */
export interface ParameterSpec {
  readonly name: string;
  /** The shape: `[rows, cols]`, or `[cols]` for a vector. */
  readonly shape: readonly number[];
}

/** Counters of work. Each is incremented where the work is done. */
export interface Work {
  /** Number of rows that went through all layers. */
  readonly tokenForwards: number;
  /** Number of rows of prefill calls. */
  readonly prefillTokens: number;
  /** Number of rows of decode and extend calls. */
  readonly decodeTokens: number;
  /** Number of rows committed to the cache, summed over layers. */
  readonly cacheAppends: number;
  /** Number of rows that went through a q, k or v projection, summed over layers. */
  readonly qkvProjectionRows: number;
  /**
   * Number of entries of the attention tensors made. Per layer and head, a cached row has one entry
   * for each position up to its own, and a replay of T tokens has a dense T x T grid.
   */
  readonly attentionScoreValues: number;
  /** Number of query-key dot products computed. */
  readonly causalScoreValues: number;
  /** Multiply-adds of the q, k and v projections. */
  readonly multiplyAddsQkv: number;
  /** Multiply-adds of the query-key dot products. */
  readonly multiplyAddsScores: number;
  /** Multiply-adds of the attention weights times the values. */
  readonly multiplyAddsMix: number;
  /** Multiply-adds of the attention's output projection. */
  readonly multiplyAddsOutput: number;
  /** Multiply-adds of the feed-forward blocks. */
  readonly multiplyAddsFfn: number;
  /** Multiply-adds of the vocabulary head. */
  readonly multiplyAddsLogits: number;
  /** Bytes of key and value rows that attention read, counted once for each query head. */
  readonly kvBytesRead: number;
  /** Bytes of key and value rows written to the cache. */
  readonly kvBytesWritten: number;
}

/** Names of the counters, in the order of the core's table. */
export const WORK_COUNTERS = [
  'tokenForwards',
  'prefillTokens',
  'decodeTokens',
  'cacheAppends',
  'qkvProjectionRows',
  'attentionScoreValues',
  'causalScoreValues',
  'multiplyAddsQkv',
  'multiplyAddsScores',
  'multiplyAddsMix',
  'multiplyAddsOutput',
  'multiplyAddsFfn',
  'multiplyAddsLogits',
  'kvBytesRead',
  'kvBytesWritten',
] as const satisfies readonly (keyof Work)[];

/** The places in the forward pass at which evidence is read, in order. */
export const STAGES = [
  'embedding',
  'attention_norm',
  'q_projection',
  'k_projection',
  'v_projection',
  'q_norm',
  'k_norm',
  'q_rope',
  'k_rope',
  'attention_weights',
  'head_outputs',
  'attention_output',
  'attention_residual',
  'ffn_norm',
  'ffn_gate',
  'ffn_up',
  'ffn_activation',
  'ffn_output',
  'ffn_residual',
  'final_norm',
  'logits',
] as const;

/** A place in the forward pass. */
export type Stage = (typeof STAGES)[number];

/** The evidence to copy while a call runs. */
export interface CaptureOptions {
  /**
   * Which stages to copy: `none` (the default, which costs nothing), `attention` (only attention
   * weights) or `all`.
   */
  readonly capture?: 'none' | 'attention' | 'all';
  /** Layers to copy, in ascending order. The default is every layer. */
  readonly layers?: readonly number[];
  /** Rows to copy: all rows of the call (the default) or only the last. */
  readonly rows?: 'all' | 'last';
}

/** One stage of one layer, for the captured rows. */
export interface StageTensor<C extends ComputeType = ComputeType> extends Tensor<C> {
  readonly stage: Stage;
  /** The layer; 0 for `embedding`, `nLayers` for `final_norm` and `logits`. */
  readonly layer: number;
  /** Position of the first row. Logits have only the last row, unless all were requested. */
  readonly firstPosition: number;
}

/** Copies of the tensors that a call computed on its way to the logits. */
export interface Evidence<C extends ComputeType = ComputeType> {
  /** The captured layers, ascending. */
  readonly layers: readonly number[];
  /** Position of the first captured row. */
  readonly firstPosition: number;
  /** Number of captured rows. */
  readonly nRows: number;
  /**
   * The attention weights, `[layers.length, nHeads, nRows, firstPosition + nRows]`. Row `r` belongs
   * to position `firstPosition + r`; entries after that position are 0.
   */
  readonly attention: Tensor<C>;
  /** With `capture: 'all'`, every other stage, each `[rows, ...shape of the stage]`. */
  readonly stages: readonly StageTensor<C>[];
}

/** Options of a forward call. */
export interface StepOptions extends CaptureOptions {
  /**
   * Whether the step contains a copy of the logits. The default is true. The session keeps them
   * either way, for its `logits`, `topTokens` and `sample`.
   */
  readonly logits?: boolean;
}

/** The kind of call that a step was. */
export type StepPhase = 'prefill' | 'decode' | 'extend';

/** A description of one call, without its tensors. */
export interface StepInfo {
  readonly phase: StepPhase;
  /** Position of the last row. */
  readonly position: number;
  /** Number of rows in the cache before the call. */
  readonly kvLenBefore: number;
  /** Number of rows in the cache after the call. */
  readonly kvLen: number;
  /** Number of rows appended to each layer, read from that layer's own length. */
  readonly rowsAppended: readonly number[];
  /** Number of attention scores of the last row alone, over all layers and heads. */
  readonly rowAttentionScoreValues: number;
  /** Work done by this call alone. */
  readonly work: Work;
  /** Wall time of the call in the core, in milliseconds. */
  readonly milliseconds: number;
}

/** The result of one forward call. */
export interface Step<C extends ComputeType = ComputeType> extends StepInfo {
  /** A copy of the logits after the last row, `[vocabSize]`; empty with `logits: false`. */
  readonly logits: FloatArray<C>;
  /** The evidence, if it was requested. */
  readonly evidence?: Evidence<C>;
}

/** The result of a complete forward pass without the cache. */
export interface Replay<C extends ComputeType = ComputeType> {
  /** Logits after the last token, `[vocabSize]`, or with `allLogits`, `[nTokens, vocabSize]`. */
  readonly logits: Tensor<C>;
  /** Work done by this replay alone. */
  readonly work: Work;
  /** Wall time of the replay in the core, in milliseconds. */
  readonly milliseconds: number;
  /** The evidence, if it was requested. */
  readonly evidence?: Evidence<C>;
}

/** A comparison of a session's logits with those of a replay of its tokens. */
export interface Verification {
  /** Number of tokens that were replayed. */
  readonly nTokens: number;
  /** Whether the two logits are the same bytes. */
  readonly bytesEqual: boolean;
  /** The largest absolute difference of two logits; exactly 0 is expected. */
  readonly maxAbsDifference: number;
  /** The call that computed the session's logits; unknown after `Session.generate`. */
  readonly cached: StepInfo | undefined;
  /** Work and time of the replay that checked it. */
  readonly replay: { readonly work: Work; readonly milliseconds: number };
  /**
   * Content hash of every layer before the replay. `hashesAfter` is the same, since a replay does
   * not touch the cache.
   */
  readonly hashesBefore: readonly string[];
  /** Content hash of every layer after the replay. */
  readonly hashesAfter: readonly string[];
}

/** A candidate for the next token. */
export interface RankedToken {
  readonly token: number;
  readonly logit: number;
  /** Natural logarithm of `probability`. */
  readonly logprob: number;
  /** Softmax over all logits. */
  readonly probability: number;
}

/** How the next token is chosen. */
export interface SamplingOptions {
  /**
   * Divides the logits. With 0 (the default) the choice is greedy: the token with the largest
   * logit, the lower id on a tie. Greedy choices use no other option.
   */
  readonly temperature?: number;
  /** Number of likeliest candidates to keep. The default, 0, keeps all. */
  readonly topK?: number;
  /**
   * Keeps the smallest set of likeliest candidates whose probabilities add up to `topP`, `(0, 1]`.
   * The default, 1, keeps all.
   */
  readonly topP?: number;
  /**
   * Drops candidates less likely than `minP` times the likeliest, `[0, 1)`. The default, 0, drops
   * none.
   */
  readonly minP?: number;
  /**
   * Divides positive logits of ids already seen and multiplies negative ones; above 0. The default,
   * 1, changes nothing.
   */
  readonly repetitionPenalty?: number;
}

/**
 * The random generator, SplitMix64. A call that draws replaces `state`; a call that fails does not.
 */
export interface Rng {
  /** The state, an unsigned 64-bit integer. */
  state: bigint;
}

/** A choice of a token, and how it came about. */
export interface Draw {
  /** The chosen token id. */
  readonly token: number;
  /** Its probability among the candidates: `interval[1] - interval[0]`. */
  readonly probability: number;
  /** The random number drawn, in `[0, 1)`. A greedy choice has none. */
  readonly unitDraw?: number;
  /** The token's share of `[0, 1)`, half-open; it contains `unitDraw`. */
  readonly interval: readonly [number, number];
  /** Number of candidates left after `topK`, `topP` and `minP`. */
  readonly candidates: number;
}

/** The calls of a session as a contrast needs them: one prefill and then decodes. */
export interface Schedule {
  /** Number of rows after each call: first the prefill's, then one more for each decode. */
  readonly prefixLengths: readonly number[];
  /** Work of all the calls together. */
  readonly work: Work;
}

/**
 * The work of two schedules of the same prefixes, with the cache and by replays, after each one's
 * counters were checked against the formula. "Avoided" is the difference.
 */
export interface Contrast {
  readonly cachedScoreValues: number;
  readonly replayScoreValues: number;
  readonly avoidedScoreValues: number;
  readonly cachedProjectionRows: number;
  readonly replayProjectionRows: number;
  readonly avoidedProjectionRows: number;
}

/** Memory in use. All but `heapBytes` are 0 when everything has been disposed of. */
export interface MemoryInfo {
  /** Number of handles not yet disposed of: models, builders, caches, sessions, savepoints. */
  readonly liveHandles: number;
  /** Number of the core's tensor buffers. */
  readonly liveBuffers: number;
  /** Bytes of those buffers. */
  readonly liveBytes: number;
  /** Size of the module's memory in bytes. It grows and never shrinks. */
  readonly heapBytes: number;
}

/** A build of the module: SIMD level, and `-mt` with threads. */
export type Variant = 'simd' | 'relaxed' | 'simd-mt' | 'relaxed-mt';

/** Which build runs, on how many threads, and why. */
export interface ModuleInfo {
  readonly variant: Variant;
  /** Number of threads, including the calling one. */
  readonly threads: number;
  /** The reasons for the build and the number of threads, one sentence each. */
  readonly why: readonly string[];
  /** Version of the module. */
  readonly version: string;
}

/** Where the module comes from and how it runs. */
export interface ModuleOptions {
  /**
   * The number of threads, the calling thread included. `auto`, the engine's default, takes one per
   * core, up to 8, and leaves a core free where there are more than two; where memory cannot be
   * shared it takes one. `loadCore` takes one by default; its threads end with `Core.dispose()`.
   * Small jobs run on the calling thread alone, and so do larger ones while other programs keep
   * the cores busy. The number of threads never changes a bit of a result.
   */
  readonly threads?: 'auto' | number;
  /** The build to load. The default is the best one that runs here. */
  readonly variant?: Variant;
  /**
   * The `.wasm` file: its bytes, its address, or the compiled module. It must belong to the variant
   * that is loaded. The default is the file of the package.
   */
  readonly wasm?: ArrayBuffer | Uint8Array | URL | string | WebAssembly.Module;
}
