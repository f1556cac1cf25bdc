/**
 * The worker level, `kvlens`: promises and streams, for a page that never blocks.
 *
 * `createEngine()` starts a worker that runs one instance of the module. Every method that returns
 * a promise rejects with a `KvLensError`, which keeps its code, context, message and cause on its
 * way from the worker. A call that rejects changes nothing. When the worker ends, everything that
 * is pending and every later call rejects with `worker_died`; a new engine can then be created.
 * Numbers, tensors and hashes are those of the synchronous level, `kvlens/core`.
 *
 * The calls of one session run in the order in which they are made; see `EngineSession`.
 */
import type { KvCache, Model } from './core-api.js';
import type { EngineSession } from './engine-session-api.js';
import type { CoreCacheMethod, CoreModelMethod, Promised } from './engine/protocol/methods.js';
import type {
  ComputeType,
  Config,
  ConfigInput,
  DType,
  FloatArray,
  KvDType,
  MemoryInfo,
  ModuleInfo,
  ModuleOptions,
  ParameterInfo,
  Tensor,
  TokenIds,
} from './types.js';

export type {
  CallOptions,
  CallProgress,
  EngineGenerateRequest,
  EngineReplayOptions,
  EngineSession,
  EngineStep,
  GeneratedToken,
  GenerationResult,
  GenerationStream,
  LongCallOptions,
  RankedPiece,
  SessionState,
  StepReadings,
  StepReads,
} from './engine-session-api.js';

/** Options of `createEngine`. */
export interface EngineOptions extends ModuleOptions {
  /**
   * Makes the worker, for bundlers that cannot find `kvlens/worker` by themselves. It must return a
   * module worker in browsers and a `Worker` of `node:worker_threads` in Node.
   */
  readonly createWorker?: () => Worker;
}

/** A worker that runs one instance of the module. */
export interface Engine extends AsyncDisposable {
  /** Which build of the module runs, on how many threads, and why. */
  readonly info: ModuleInfo;
  /**
   * Loads a checkpoint: GGUF (v1 to v3, split or not), safetensors with its config.json, or a
   * llama2.c `.bin`. After an error or an abort nothing of it stays in memory. Errors:
   * invalid_file, unsupported_file, truncated_file, missing_file, network_error, model_too_large,
   * out_of_memory, aborted, and those of the parameters (such as non_finite_parameter).
   */
  loadModel(source: ModelSource, options?: LoadOptions): Promise<EngineModel>;
  /**
   * Makes a model with random weights, without a tokenizer. The same seed gives the same model
   * everywhere. Errors: invalid_config, invalid_argument, out_of_memory.
   */
  randomModel(
    config: ConfigInput,
    options: { readonly seed: bigint | number; readonly dtype?: 'f64' | 'f32' },
  ): Promise<EngineModel>;
  /** Counts what is alive in the module's memory. */
  memory(): Promise<MemoryInfo>;
  /** Resolves when the worker has ended, whatever ended it. It never rejects. */
  readonly ended: Promise<void>;
  /**
   * Ends the worker and frees everything in it. Whatever is pending rejects with `disposed`.
   * Calling it again does nothing.
   */
  dispose(): Promise<void>;
}

/** One file: its address, or its bytes. In Node a string that is not an address is a path. */
export type FileSource = string | URL | Blob | ArrayBuffer | Uint8Array;

/**
 * A checkpoint: one file, or all of its files by name (`config.json`, `model.safetensors`,
 * `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`, `model-00001-of-00002.gguf`,
 * ...). The files of a `File` list go by their own names.
 *
 * Buffers are copied to the worker, so give large files as a `Blob`, a `File` or an address. Node
 * cannot send a `Blob` that reads from a file (`fs.openAsBlob`) to a worker; this is
 * `invalid_argument`. Give the path instead.
 */
export type ModelSource = FileSource | readonly File[] | Readonly<Record<string, FileSource>>;

/** How far a load has come. */
export interface LoadProgress {
  /** `open` while headers and small files are read, `load` while weights arrive, then `ready`. */
  readonly stage: 'open' | 'load' | 'ready';
  /** Bytes of weights that have arrived. */
  readonly bytes: number;
  /** Bytes of all weights; 0 until it is known. */
  readonly total: number;
}

/** Options of `Engine.loadModel`. */
export interface LoadOptions {
  /** Is called as the load goes on. If it throws, the load rejects with its error. */
  readonly onProgress?: (progress: LoadProgress) => void;
  /** Stops the load, which then rejects with `aborted`, the signal's reason as its cause. */
  readonly signal?: AbortSignal;
  /**
   * Keeps downloads in the origin's private file system and checks them before each use. The
   * default is false.
   */
  readonly cache?: boolean;
}

/** One turn of a conversation, as the checkpoint's chat template takes it, with any other field. */
export interface ChatMessage {
  /** Fields that the template may use, for example `tool_calls`. */
  readonly [field: string]: unknown;
  /** Usually `system`, `user` or `assistant`. */
  readonly role: string;
  /** The text of the turn. */
  readonly content: string;
}

/** How a checkpoint's chat template writes a conversation. */
export interface ChatTemplateOptions {
  /** Whether the text ends with the beginning of the assistant's answer. The default is true. */
  readonly addGenerationPrompt?: boolean;
  /** Descriptions of the tools that the model may call; none by default. */
  readonly tools?: readonly unknown[];
  /** Documents for templates that take some; none by default. */
  readonly documents?: readonly unknown[];
  /** Further variables of the template, for example `{ enable_thinking: false }`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** How a text becomes tokens. */
export interface TokenizeOptions {
  /** Whether BOS and EOS are added as the checkpoint asks for. The default is true. */
  readonly addSpecial?: boolean;
  /**
   * Whether the names of control tokens in the text, such as `<|im_end|>`, become those tokens. The
   * default is true. Otherwise they are ordinary text.
   */
  readonly parseSpecial?: boolean;
}

/** What is known of a model's tokenizer. */
export interface TokenizerInfo {
  /** Number of ids that the tokenizer knows. The model may have more, as padding. */
  readonly vocabSize: number;
  /** The id that begins a text; undefined if the vocabulary has none. */
  readonly bosToken: number | undefined;
  /** The ids that end a generation. */
  readonly eosTokens: readonly number[];
  /** Whether `applyChatTemplate` and `generate({ messages })` work. */
  readonly hasChatTemplate: boolean;
}

/** A model in the worker. */
export interface EngineModel extends AsyncDisposable, Promised<Pick<Model, CoreModelMethod>> {
  /** The model's sizes and options. */
  readonly config: Config;
  /** Where the model comes from, and its size. */
  readonly info: EngineModelInfo;
  /**
   * The tokenizer's description; undefined if the checkpoint has no tokenizer, or one that kvlens
   * does not support, which is then a warning in `info.warnings`.
   */
  readonly tokenizer: TokenizerInfo | undefined;

  /**
   * Resolves to the ids of `text`. Errors: no_tokenizer, invalid_argument.
   */
  tokenize(text: string, options?: TokenizeOptions): Promise<Uint32Array<ArrayBuffer>>;
  /**
   * Resolves to the text of `tokens`, without special tokens. Errors: no_tokenizer,
   * token_out_of_range.
   */
  detokenize(tokens: TokenIds): Promise<string>;
  /**
   * Resolves to each token's own piece of text, in the order of `tokens`: special tokens by their
   * names, single bytes as `<0x0A>`. Errors: no_tokenizer, token_out_of_range.
   */
  pieces(tokens: TokenIds): Promise<string[]>;
  /**
   * Writes a conversation as text with the checkpoint's own template. Errors: no_tokenizer,
   * no_chat_template, chat_template_failed.
   */
  applyChatTemplate(
    messages: readonly ChatMessage[],
    options?: ChatTemplateOptions,
  ): Promise<string>;

  /** Resolves to a description of every parameter as it is stored now. */
  parameters(): Promise<ParameterInfo[]>;
  /**
   * Resolves to rows `[rowBegin, rowBegin + nRows)` of a parameter, dequantised, `[nRows, cols]`. A
   * vector is one row. Errors: unknown_parameter, invalid_argument.
   */
  readRows(name: string, rowBegin: number, nRows: number): Promise<Float64Array<ArrayBuffer>>;
  /**
   * Replaces a parameter and raises its revision, so that caches made before no longer bind.
   * Errors: parameter_borrowed while a session is alive, unknown_parameter,
   * parameter_size_mismatch, unsupported_dtype, non_finite_parameter, out_of_memory.
   */
  updateParameter(parameter: {
    readonly name: string;
    readonly dtype: DType;
    readonly data: ArrayBufferView | ArrayBuffer;
  }): Promise<void>;
  /**
   * Resolves to a hash of configuration, names, storage types and bytes. `updateParameter` changes
   * it.
   */
  hash(): Promise<string>;

  /**
   * Makes an empty cache for this model. Errors: zero_capacity, capacity_exceeds_max_seq_len,
   * out_of_memory, invalid_argument (`kvDtype` does not go with `compute` or with the model's head
   * size).
   */
  createCache(options?: EngineCacheOptions): Promise<EngineCache>;
  /**
   * Makes a session that reads and extends `cache`. Errors: invalid_argument (a cache of another
   * engine), config_mismatch, parameter_revision_mismatch and the other binding errors.
   */
  bind(cache: EngineCache, options?: EngineSessionOptions): Promise<EngineSession>;
  /**
   * Makes a session with a cache that is disposed together with it. Errors: those of `createCache`
   * and `bind`.
   */
  createSession(options?: EngineCacheOptions & EngineSessionOptions): Promise<EngineSession>;
  /**
   * Frees the model's memory. Calling it again does nothing. Errors: model_in_use while a session
   * uses it.
   */
  dispose(): Promise<void>;
}

/** Something in a file that did not keep the model from loading. */
export interface ModelWarning {
  /** The file's name. */
  readonly file: string;
  /** The field or tensor that it is about. */
  readonly field: string;
  /** The value found. */
  readonly value: string;
  /** One sentence: what was found and what kvlens does about it. */
  readonly message: string;
}

/** A model's description for people. */
export interface EngineModelInfo {
  /** What the checkpoint's files hold that kvlens set aside or had to choose about. */
  readonly warnings: readonly ModelWarning[];
  /** The name that the file gives, or otherwise the file's own name. */
  readonly name: string;
  /** The format of the checkpoint, or `random`. */
  readonly format: 'gguf' | 'safetensors' | 'llama2c' | 'random';
  /** The architecture that the file names, such as `llama` or `qwen2`. */
  readonly architecture: string;
  /** The hash of configuration, names, storage types and bytes when the model was loaded. */
  readonly hash: string;
  /** Bytes of all parameters as they are stored. */
  readonly parameterBytes: number;
  /** Number of values in all parameters. */
  readonly nParameters: number;
  /** Storage types of the matrices and how many matrices have each, most frequent first. */
  readonly dtypes: readonly (readonly [DType, number])[];
  /** Wall time of the load, in milliseconds. */
  readonly loadMilliseconds: number;
}

/** Options of `EngineModel.createCache`. */
export interface EngineCacheOptions {
  /** Rows that each layer can hold. The default is the model's maxSeqLen, at most 4096. */
  readonly capacity?: number;
  /** The type that sessions of this cache compute in. The default is `f32`. */
  readonly compute?: ComputeType;
  /**
   * The type that keys and values are stored as. The default is the type of `compute`. `bf16` and
   * `q8_0` round the values and take fewer bytes to hold and to read for each token.
   */
  readonly kvDtype?: KvDType;
}

/** Options of `EngineModel.bind`. */
export interface EngineSessionOptions {
  /**
   * Rows that a call advances together. The default is 64. Progress is reported and an abort is
   * seen once per this many rows.
   */
  readonly chunkRows?: number;
}

/**
 * A key/value cache in the worker. All methods answer at once, even while a session of the cache
 * runs a call, with the rows that are committed at that moment.
 */
export interface EngineCache extends AsyncDisposable, Promised<Pick<KvCache, CoreCacheMethod>> {
  /** The type that sessions of this cache compute in. */
  readonly compute: ComputeType;
  /** The type that keys and values are stored as. */
  readonly kvDtype: KvDType;
  /** Rows that each layer can hold. */
  readonly capacity: number;
  /** Number of layers. */
  readonly nLayers: number;
  /** Bytes allocated for keys and values. */
  readonly bytes: number;
  /** Resolves to the number of rows held. */
  len(): Promise<number>;
  /** Resolves to the ids of the rows held, `[len]`. */
  tokens(): Promise<Uint32Array<ArrayBuffer>>;
  /**
   * Resolves to one hash per layer, of the bytes of its first `nRows` rows as they are now. The
   * default is all rows. Errors: invalid_length.
   */
  contentHashes(nRows?: number): Promise<string[]>;
  /**
   * Resolves to `contentHashes` of each of several lengths, read in one pass over the rows. Errors:
   * invalid_length.
   */
  prefixHashes(lengths: readonly number[]): Promise<string[][]>;
  /** Resolves to one row of one head. Errors: invalid_argument. */
  row(layer: number, kvHead: number, position: number): Promise<CacheRow>;
  /**
   * Resolves to all rotated keys and all values of one layer, each `[nKvHeads, len, headDim]`.
   * Errors: invalid_argument.
   */
  layer(index: number): Promise<{ readonly keys: Tensor; readonly values: Tensor }>;
  /**
   * Frees the cache's memory. Calling it again does nothing. Errors: cache_in_use while a session
   * is bound to it.
   */
  dispose(): Promise<void>;
}

/** One cached row of one head. Both arrays are `[headDim]`. */
export interface CacheRow {
  /** The key, rotated for its position. */
  readonly key: FloatArray;
  /** The value. */
  readonly value: FloatArray;
}
