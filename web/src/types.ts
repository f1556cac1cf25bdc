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
  /** Each pair's frequency is divided by its factor, `[headDim / 2]`. Empty (the default) for none. */
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

/** A storage type. */
export type DType = (typeof DTYPES)[number];

/**
 * What a session computes and caches in: single precision (the product) or double (the reference).
 */
export type ComputeType = 'f32' | 'f64';

/**
 * What a cache's keys and values are stored as: what is computed in or, where that is `f32`, `bf16`
 * (half the bytes) or `q8_0` (17/64 of them, where `headDim` is a multiple of 32 up to 512: every
 * 32 values share a scale). With the latter two, attention reads keys and values rounded, as the
 * cache shows them; captured `k_rope` and `v_projection` are those before. With `q8_0` it also
 * rounds queries, and weights times scales, to 16 bits.
 */
export type KvDType = ComputeType | 'bf16' | 'q8_0';

/** The typed array of a compute type, always with memory of its own. */
export type FloatArray<C extends ComputeType = ComputeType> = C extends 'f64'
  ? Float64Array<ArrayBuffer>
  : Float32Array<ArrayBuffer>;

/** Token ids as given: integers in `0..vocabSize - 1`. */
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
  /** `[rows, cols]`, or `[cols]` for a vector. */
  readonly shape: readonly number[];
  /** Bytes of storage. */
  readonly bytes: number;
  /** 0 when made, one more at each update. */
  readonly revision: number;
}

/** What a parameter has to look like. */
export interface ParameterSpec {
  readonly name: string;
  /** `[rows, cols]`, or `[cols]` for a vector. */
  readonly shape: readonly number[];
}

/** Counters of work, incremented where the work is done. */
export interface Work {
  /** Rows advanced through all layers. */
  readonly tokenForwards: number;
  /** Rows of prefill calls. */
  readonly prefillTokens: number;
  /** Rows of decode and extend calls. */
  readonly decodeTokens: number;
  /** Rows committed, summed over layers. */
  readonly cacheAppends: number;
  /** Rows through a q, k or v projection, summed over layers. */
  readonly qkvProjectionRows: number;
  /**
   * Entries of attention tensors made: a cached row has its length a head, a replay the dense T x T
   * grid.
   */
  readonly attentionScoreValues: number;
  /** Query-key dot products computed. */
  readonly causalScoreValues: number;
  readonly multiplyAddsQkv: number;
  readonly multiplyAddsScores: number;
  /** Weights times values. */
  readonly multiplyAddsMix: number;
  readonly multiplyAddsOutput: number;
  readonly multiplyAddsFfn: number;
  readonly multiplyAddsLogits: number;
  /** Bytes of key and value rows that attention went over, once a query head. */
  readonly kvBytesRead: number;
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

/** The places in the forward pass that evidence is read at, in order. */
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

/** What to copy while a call runs. */
export interface CaptureOptions {
  /** `none` (the default) costs nothing; `attention` the weights alone; `all` every stage. */
  readonly capture?: 'none' | 'attention' | 'all';
  /** Layers to copy, ascending; every layer when left out. */
  readonly layers?: readonly number[];
  /** Rows to copy: all of the call's (the default) or its last alone. */
  readonly rows?: 'all' | 'last';
}

/** One stage of one layer, for the captured rows. */
export interface StageTensor<C extends ComputeType = ComputeType> extends Tensor<C> {
  readonly stage: Stage;
  /** 0 for `embedding`, `nLayers` for `final_norm` and `logits`. */
  readonly layer: number;
  /** Position of the first row; the logits have the last row alone unless all were asked for. */
  readonly firstPosition: number;
}

/** What a call computed, copied while it ran: the very tensors that produced its logits. */
export interface Evidence<C extends ComputeType = ComputeType> {
  /** The captured layers, ascending. */
  readonly layers: readonly number[];
  /** Position of the first captured row. */
  readonly firstPosition: number;
  readonly nRows: number;
  /**
   * Attention weights, `[layers.length, nHeads, nRows, firstPosition + nRows]`; row `r` is that of
   * position `firstPosition + r`, and what lies after its own position is 0.
   */
  readonly attention: Tensor<C>;
  /** With `all`: every other stage, each `[rows, ...shape of the stage]`; empty otherwise. */
  readonly stages: readonly StageTensor<C>[];
}

/** What a call hands out beside what it did. */
export interface StepOptions extends CaptureOptions {
  /**
   * Whether the step has a copy of the logits; true when left out. They are in the session either
   * way: see its `logits`, `topTokens` and `sample`.
   */
  readonly logits?: boolean;
}

/** Which call a step was. */
export type StepPhase = 'prefill' | 'decode' | 'extend';

/** What one call did, without its tensors. */
export interface StepInfo {
  readonly phase: StepPhase;
  /** Of the last row. */
  readonly position: number;
  readonly kvLenBefore: number;
  readonly kvLen: number;
  /** Rows appended to each layer: `kvLen - kvLenBefore`, read from every layer's own length. */
  readonly rowsAppended: readonly number[];
  /** Attention scores of the last row alone, over all layers and heads. */
  readonly rowAttentionScoreValues: number;
  /** Of this call alone. */
  readonly work: Work;
  /** Wall time around the core call, in milliseconds. */
  readonly milliseconds: number;
}

/** What one call did. */
export interface Step<C extends ComputeType = ComputeType> extends StepInfo {
  /** `[vocabSize]`, after the last row; a copy, or empty with `logits: false`. */
  readonly logits: FloatArray<C>;
  /** Present when it was asked for. */
  readonly evidence?: Evidence<C>;
}

/** A complete-prefix forward without the cache. */
export interface Replay<C extends ComputeType = ComputeType> {
  /** `[vocabSize]` after the last token, or `[nTokens, vocabSize]` when all were asked for. */
  readonly logits: Tensor<C>;
  readonly work: Work;
  /** Wall time around the core call, in milliseconds. */
  readonly milliseconds: number;
  /** Present when it was asked for. */
  readonly evidence?: Evidence<C>;
}

/** The cache against a complete-prefix replay of the same tokens. */
export interface Verification {
  readonly nTokens: number;
  /** Whether the two logits are the same bytes. */
  readonly bytesEqual: boolean;
  /** Largest |difference| of the logits; 0 is expected, exactly. */
  readonly maxAbsDifference: number;
  /** The call that gave the session's logits; not known one by one after `Session.generate`. */
  readonly cached: StepInfo | undefined;
  /** The replay that was run to check it. */
  readonly replay: { readonly work: Work; readonly milliseconds: number };
  /**
   * Content hash of every layer before and after the replay; equal, since a replay uses no cache.
   */
  readonly hashesBefore: readonly string[];
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
   * 0 (the default) is greedy: the largest logit, ties to the lower id; the rest is then unused.
   */
  readonly temperature?: number;
  /** Candidates kept; 0 (the default): all. */
  readonly topK?: number;
  /** `(0, 1]`, 1 by default: the smallest set of candidates that reaches it. */
  readonly topP?: number;
  /** `[0, 1)`, 0 by default: candidates below `minP` times the largest probability go. */
  readonly minP?: number;
  /** `> 0`, 1 by default: divides positive and multiplies negative logits of ids already seen. */
  readonly repetitionPenalty?: number;
}

/**
 * State of SplitMix64, the random generator. A call that draws moves `state`; one that fails does
 * not.
 */
export interface Rng {
  /** 64 bits, unsigned. */
  state: bigint;
}

/** A choice of a token, with what it was chosen by. */
export interface Draw {
  readonly token: number;
  /** `interval[1] - interval[0]`. */
  readonly probability: number;
  /** In `[0, 1)`; none for a greedy choice. */
  readonly unitDraw?: number;
  /** Half-open, holds `unitDraw`. */
  readonly interval: readonly [number, number];
  /** Tokens left after topK, topP and minP. */
  readonly candidates: number;
}

/** Lengths of the prefix at each call that gave logits, and the work of all of them. */
export interface Schedule {
  /** First a prefill's, then one more for each decode. */
  readonly prefixLengths: readonly number[];
  readonly work: Work;
}

/** Two schedules of the same prefixes, each checked against the formula. */
export interface Contrast {
  readonly cachedScoreValues: number;
  readonly replayScoreValues: number;
  readonly avoidedScoreValues: number;
  readonly cachedProjectionRows: number;
  readonly replayProjectionRows: number;
  readonly avoidedProjectionRows: number;
}

/** What `memory()` counts; both are 0 when everything has been disposed. */
export interface MemoryInfo {
  /** Handles not yet disposed: models, builders, caches, sessions. */
  readonly liveHandles: number;
  /** Tensor buffers of the core. */
  readonly liveBuffers: number;
  /** Their bytes. */
  readonly liveBytes: number;
  /** Size of the module's memory; it grows and never shrinks. */
  readonly heapBytes: number;
}

/** A build of the module: SIMD level, and `-mt` with threads. */
export type Variant = 'simd' | 'relaxed' | 'simd-mt' | 'relaxed-mt';

/** Which build runs, on how many threads, and why. */
export interface ModuleInfo {
  readonly variant: Variant;
  /** The calling thread included. */
  readonly threads: number;
  /** One sentence for each thing that decided it, e.g. why there is one thread. */
  readonly why: readonly string[];
  /** Of the module. */
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
  /** Takes this build instead of the best one that runs here. */
  readonly variant?: Variant;
  /**
   * The `.wasm` itself: its bytes, its address, or compiled. It has to be that of the chosen
   * variant.
   */
  readonly wasm?: ArrayBuffer | Uint8Array | URL | string | WebAssembly.Module;
}
