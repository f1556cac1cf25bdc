/**
 * The worker level, `kvlens`: promises and streams, for a page that never blocks.
 *
 * `createEngine()` starts a worker with one instance of the module in it. Every method that returns
 * a promise rejects with a `KvLensError`, whose message, context and cause came through the worker
 * as they were. When the worker ends, everything pending and every later call rejects with
 * `worker_died`; a new engine can then be created. Numbers, tensors and hashes are those of the
 * synchronous level.
 *
 * One session runs one call at a time: a second one meanwhile is `call_in_progress`. Different
 * sessions take turns, step by step.
 */
import type {
  CaptureOptions,
  ComputeType,
  Config,
  ConfigInput,
  Contrast,
  Draw,
  DType,
  Evidence,
  FloatArray,
  KvDType,
  MemoryInfo,
  ModuleInfo,
  ModuleOptions,
  ParameterInfo,
  RankedToken,
  Replay,
  SamplingOptions,
  Step,
  StepInfo,
  StepOptions,
  Tensor,
  TokenIds,
  Verification,
  Work,
} from './types.js';

/** See `createEngine`. */
export interface EngineOptions extends ModuleOptions {
  /**
   * Makes the worker, where a bundler cannot find `kvlens/worker` by itself. A module worker in
   * browsers, a `Worker` of `node:worker_threads` in Node.
   */
  readonly createWorker?: () => Worker;
}

/** A worker with one instance of the module. */
export interface Engine extends AsyncDisposable {
  readonly info: ModuleInfo;
  /**
   * Loads a checkpoint: GGUF (v1 to v3, split or not), safetensors with its config.json, llama2.c
   * `.bin`. Nothing of it stays after an error or an abort. Errors: invalid_file, unsupported_file,
   * truncated_file, missing_file, network_error, model_too_large, out_of_memory, aborted, and those
   * of the parameters (e.g. non_finite_parameter).
   */
  loadModel(source: ModelSource, options?: LoadOptions): Promise<EngineModel>;
  /** A random decoder from a seed, without a tokenizer. Errors: invalid_config, out_of_memory. */
  randomModel(
    config: ConfigInput,
    options: { readonly seed: bigint | number; readonly dtype?: 'f64' | 'f32' },
  ): Promise<EngineModel>;
  /** What is alive in the worker's module. */
  memory(): Promise<MemoryInfo>;
  /** Resolves to nothing when the worker has ended, whatever ended it. */
  readonly ended: Promise<void>;
  /** Ends the worker; everything pending rejects with `disposed`. Calling it again does nothing. */
  dispose(): Promise<void>;
}

/** One file: an address, or its bytes. In Node a string that is no URL is a path. */
export type FileSource = string | URL | Blob | ArrayBuffer | Uint8Array;

/**
 * A checkpoint: one file, or all of its files by name (`config.json`, `model.safetensors`,
 * `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`, `model-00001-of-00002.gguf`,
 * ...). A list of `File`s goes by their names. Buffers are copied to the worker: give large files
 * as `Blob`, `File` or address. Node cannot send a `Blob` over a file (`fs.openAsBlob`) to a
 * worker, which is `invalid_argument`: give it the path.
 */
export type ModelSource = FileSource | readonly File[] | Readonly<Record<string, FileSource>>;

/** How a load is going. */
export interface LoadProgress {
  /** `open`: headers and small files; `load`: weights; `ready`. */
  readonly stage: 'open' | 'load' | 'ready';
  /** Bytes of weights that have arrived. */
  readonly bytes: number;
  /** Bytes of all weights; 0 until it is known. */
  readonly total: number;
}

/** See `Engine.loadModel`. */
export interface LoadOptions {
  readonly onProgress?: (progress: LoadProgress) => void;
  readonly signal?: AbortSignal;
  /**
   * Keeps downloads in the origin's private file system, checked before each use. false by default.
   */
  readonly cache?: boolean;
}

/** A turn of a conversation, as the checkpoint's chat template takes it. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
}

/** What a model's tokenizer is. */
export interface TokenizerInfo {
  readonly vocabSize: number;
  readonly bosToken: number | undefined;
  /** Ids that end a generation. */
  readonly eosTokens: readonly number[];
  readonly hasChatTemplate: boolean;
}

/** A model in the worker. */
export interface EngineModel extends AsyncDisposable {
  readonly config: Config;
  readonly info: EngineModelInfo;
  /** undefined when the checkpoint has none. */
  readonly tokenizer: TokenizerInfo | undefined;

  /**
   * Ids of `text`; with `addSpecial` (true by default) the BOS and EOS that the file asks for.
   * Errors: no_tokenizer.
   */
  tokenize(
    text: string,
    options?: { readonly addSpecial?: boolean },
  ): Promise<Uint32Array<ArrayBuffer>>;
  /** Text of `tokens`, special tokens left out. Errors: no_tokenizer, token_out_of_range. */
  detokenize(tokens: TokenIds): Promise<string>;
  /**
   * Each token as a piece of text of its own, special tokens by name, lone bytes as `<0x0A>`.
   * Errors: as detokenize.
   */
  pieces(tokens: TokenIds): Promise<string[]>;
  /**
   * The conversation as the checkpoint's own template writes it. Errors: no_chat_template,
   * chat_template_failed.
   */
  applyChatTemplate(
    messages: readonly ChatMessage[],
    options?: { readonly addGenerationPrompt?: boolean },
  ): Promise<string>;

  /** The parameters as they are stored now. */
  parameters(): Promise<ParameterInfo[]>;
  /** See `Model.readRows` of `kvlens/core`. */
  readRows(name: string, rowBegin: number, nRows: number): Promise<Float64Array<ArrayBuffer>>;
  /**
   * See `Model.updateParameter` of `kvlens/core`. Errors: parameter_borrowed while a session is
   * alive, and its others.
   */
  updateParameter(parameter: {
    readonly name: string;
    readonly dtype: DType;
    readonly data: ArrayBufferView | ArrayBuffer;
  }): Promise<void>;
  /** Identifies configuration, names, storage types and bytes; changes with `updateParameter`. */
  hash(): Promise<string>;

  /**
   * An empty cache. Errors: zero_capacity, capacity_exceeds_max_seq_len, invalid_argument (a
   * `kvDtype` that does not go with `compute` or the model's head size), out_of_memory.
   */
  createCache(options?: EngineCacheOptions): Promise<EngineCache>;
  /** Errors: config_mismatch, parameter_revision_mismatch and the other binding errors. */
  bind(cache: EngineCache, options?: EngineSessionOptions): Promise<EngineSession>;
  /** A session with a cache of its own. Errors: those of both. */
  createSession(options?: EngineCacheOptions & EngineSessionOptions): Promise<EngineSession>;
  /** Errors: model_in_use while a session holds it. */
  dispose(): Promise<void>;
}

/** What a model is, for people. */
export interface EngineModelInfo {
  /** The file's own name for it, or that of the file. */
  readonly name: string;
  /** `gguf`, `safetensors`, `llama2c`, or `random`. */
  readonly format: 'gguf' | 'safetensors' | 'llama2c' | 'random';
  /** Of the file, e.g. `llama` or `qwen2`. */
  readonly architecture: string;
  /** Of configuration, names, storage types and bytes, as loaded. */
  readonly hash: string;
  /** Bytes of all parameters as stored. */
  readonly parameterBytes: number;
  /** Values of all parameters. */
  readonly nParameters: number;
  /** Storage types of the matrices, by number of parameters stored so, most first. */
  readonly dtypes: readonly (readonly [DType, number])[];
  /** Wall time of the load, in milliseconds. */
  readonly loadMilliseconds: number;
}

/** See `EngineModel.createCache`. */
export interface EngineCacheOptions {
  /** Rows a layer can hold; `min(maxSeqLen, 4096)` by default. */
  readonly capacity?: number;
  /** `f32` by default. */
  readonly compute?: ComputeType;
  /**
   * What keys and values are stored as: `compute`'s own type by default. In `bf16` or `q8_0` they
   * are rounded, and there are fewer bytes to hold and to read for every token.
   */
  readonly kvDtype?: KvDType;
}

/** See `EngineModel.bind`. */
export interface EngineSessionOptions {
  /** Rows advanced together, 64 by default: how often progress is reported and an abort is seen. */
  readonly chunkRows?: number;
}

/** A key/value cache in the worker. */
export interface EngineCache extends AsyncDisposable {
  readonly compute: ComputeType;
  /** What keys and values are stored as. */
  readonly kvDtype: KvDType;
  readonly capacity: number;
  readonly nLayers: number;
  /** Bytes allocated for keys and values. */
  readonly bytes: number;
  /** Rows held. */
  len(): Promise<number>;
  /** Ids of the rows. */
  tokens(): Promise<Uint32Array<ArrayBuffer>>;
  /** One row of one head. Errors: invalid_argument. */
  row(layer: number, kvHead: number, position: number): Promise<CacheRow>;
  /**
   * All rotated keys and values of one layer, each `[nKvHeads, len, headDim]`. Errors:
   * invalid_argument.
   */
  layer(index: number): Promise<{ readonly keys: Tensor; readonly values: Tensor }>;
  /**
   * Of the bytes of the first `nRows` rows (all by default) as they are now, one a layer. Errors:
   * invalid_length.
   */
  contentHashes(nRows?: number): Promise<string[]>;
  /**
   * `contentHashes` of each of several lengths, in one pass over the rows. Errors: invalid_length.
   */
  prefixHashes(lengths: readonly number[]): Promise<string[][]>;
  /** Errors: cache_in_use while a session is bound to it. */
  dispose(): Promise<void>;
}

/** See `EngineCache.row`. Each is `[headDim]`. */
export interface CacheRow {
  /** Rotated for its position. */
  readonly key: FloatArray;
  readonly value: FloatArray;
}

/**
 * How a call is going, in tokens. A replay takes all of its tokens through one layer after another,
 * so its `done` has fractions. It never goes back, and ends at `total`.
 */
export interface CallProgress {
  readonly done: number;
  readonly total: number;
}

/** What a call that takes long can be given. */
export interface LongCallOptions {
  /**
   * Seen after each step, which is up to `chunkRows` tokens: through all layers in a forward call,
   * through one layer in a replay. The call then rejects with `aborted`, its cause the signal's
   * reason, and the session is as it was before.
   */
  readonly signal?: AbortSignal;
  /** Called after steps, at most about a hundred times in a replay. */
  readonly onProgress?: (progress: CallProgress) => void;
}

/** Options of one forward call. */
export interface CallOptions extends StepOptions, LongCallOptions {}

/** State of a session at one moment. */
export interface SessionState {
  readonly kvLen: number;
  readonly capacity: number;
  readonly tokens: Uint32Array<ArrayBuffer>;
  /** Of all calls since binding or `reset`; what an abort undid is left out. */
  readonly work: Work;
  readonly hasLogits: boolean;
  readonly lastStep: StepInfo | undefined;
  readonly callInProgress: boolean;
}

/** One model bound to one cache in the worker. */
export interface EngineSession extends AsyncDisposable {
  readonly model: EngineModel;
  readonly cache: EngineCache;
  readonly compute: ComputeType;
  readonly capacity: number;

  /** See `Session.prefill` of `kvlens/core`. Errors: its own, aborted. */
  prefill(tokens: TokenIds, options?: CallOptions): Promise<Step>;
  /** See `Session.decode`. */
  decode(token: number, options?: CallOptions): Promise<Step>;
  /** See `Session.extend`. */
  extend(tokens: TokenIds, options?: CallOptions): Promise<Step>;
  /** See `Session.replay`. Errors: its own, aborted. */
  replay(options?: EngineReplayOptions): Promise<Replay>;
  /**
   * A replay of all tokens for its attention maps alone, `[layers.length, nHeads, kvLen, kvLen]`.
   * Errors: as replay.
   */
  attentionMaps(layers: readonly number[], options?: LongCallOptions): Promise<Tensor>;
  /** See `Session.verify`: the cache against a replay, run for real. Errors: its own, aborted. */
  verify(options?: LongCallOptions): Promise<Verification>;
  /**
   * See `Session.contrast`: each prefix of the session replayed for real; progress is over the
   * tokens of all of them. Errors: its own, aborted.
   */
  contrast(options?: LongCallOptions): Promise<Contrast>;

  /** Keeps the first `len` rows. Errors: invalid_length, call_in_progress. */
  truncate(len: number): Promise<void>;
  /** No rows, counters zero. */
  reset(): Promise<void>;
  state(): Promise<SessionState>;
  work(): Promise<Work>;
  /** Errors: no_logits. */
  logits(): Promise<FloatArray>;
  /** Evidence of the last call that captured any. */
  evidence(): Promise<Evidence | undefined>;
  /** Errors: no_logits. */
  topTokens(n: number): Promise<RankedToken[]>;
  /**
   * Chooses the next token without decoding it; give the returned `rngState` to the next choice.
   * Errors: no_logits, invalid_sampling.
   */
  sample(
    sampling: SamplingOptions,
    rngState?: bigint,
  ): Promise<{ readonly draw: Draw; readonly rngState: bigint }>;
  /**
   * Streams new tokens. The prompt is compared with what the cache holds: the common prefix is
   * kept, what differs is dropped, and only the rest is prefilled.
   */
  generate(request: EngineGenerateRequest): GenerationStream;
  /** Gives the model free, and the cache too when the session owns it. */
  dispose(): Promise<void>;
}

/** See `EngineSession.replay`. */
export interface EngineReplayOptions extends CallOptions {
  readonly tokens?: TokenIds;
  /** Logits after every token instead of the last alone. */
  readonly allLogits?: boolean;
}

/** What to generate: exactly one of `prompt`, `messages` and `tokens`. */
export interface EngineGenerateRequest extends SamplingOptions, CaptureOptions {
  /** Text, tokenized with the file's BOS rule. */
  readonly prompt?: string;
  /** A conversation, written by the checkpoint's own template. */
  readonly messages?: readonly ChatMessage[];
  /** Ids as they are. */
  readonly tokens?: TokenIds;
  /** 256 by default. */
  readonly maxNewTokens?: number;
  /** Texts that end the generation; they and what follows are left out of the text. */
  readonly stop?: readonly string[];
  /** Ids that end it; the tokenizer's own by default. */
  readonly eosTokens?: readonly number[];
  /** 0 by default. The same seed and model give the same tokens everywhere. */
  readonly seed?: bigint | number;
  /** Likeliest candidates to report with each token; 0 by default. */
  readonly logprobs?: number;
  /**
   * Evidence to send with each token, of the row that its logits come from unless `rows` is `all`.
   */
  readonly rows?: 'all' | 'last';
  /** Called after each chunk of the prompt that is prefilled. */
  readonly onProgress?: (progress: CallProgress) => void;
  /**
   * Seen between chunks and tokens. The stream then ends, its result says `aborted`, and the
   * session is as it was before the call. Leaving the loop early is an abort too.
   */
  readonly signal?: AbortSignal;
}

/** One generated token. */
export interface GeneratedToken {
  readonly token: number;
  /** What it adds to the text; never half a character, so it may be empty. */
  readonly text: string;
  /** Natural logarithm of its probability among all tokens. */
  readonly logprob: number;
  /** With `logprobs`: the likeliest candidates. */
  readonly topTokens?: readonly RankedToken[];
  readonly draw: Draw;
  /** That it takes when decoded. */
  readonly position: number;
  /** Rows in the cache when it was chosen. */
  readonly kvLen: number;
  /** The call whose logits it was chosen from; its work, time and lengths. */
  readonly step: StepInfo;
  readonly work: Work;
  /** Of that call, when it was asked for. */
  readonly evidence?: Evidence;
}

/** How a generation went. */
export interface GenerationResult {
  /** New ones, the stopping one included. */
  readonly tokens: Uint32Array<ArrayBuffer>;
  readonly text: string;
  /** EOS before stop string before token limit before context limit. */
  readonly stop: 'eos' | 'stop_string' | 'token_limit' | 'context_limit' | 'aborted';
  readonly promptTokens: number;
  /** Tokens of the prompt whose rows were already in the cache. */
  readonly reusedTokens: number;
  readonly kvLen: number;
  /** Of this call. */
  readonly work: Work;
  readonly milliseconds: number;
  /** State of the random generator afterwards. */
  readonly rngState: bigint;
}

/** Tokens as they come. It runs whether or not it is iterated, once. */
export interface GenerationStream extends AsyncIterable<GeneratedToken> {
  /** Settles when the generation ends; an abort resolves, with `stop: 'aborted'`. */
  readonly result: Promise<GenerationResult>;
}
