/**
 * The worker level, `kvlens`: promises and streams, for a page that never blocks.
 *
 * `createEngine()` starts a worker that runs one instance of the module. Every method that returns
 * a promise rejects with a `KvLensError`, which keeps its code, context, message and cause on its
 * way from the worker. A call that rejects changes nothing. When the worker ends, everything that
 * is pending and every later call rejects with `worker_died`; a new engine can then be created.
 * Numbers, tensors and hashes are those of the synchronous level, `kvlens/core`.
 *
 * The calls of one session run one at a time, in the order in which they are made, whether or not
 * the caller awaits each of them:
 *
 * - A call that waits for its turn can be aborted. It then never runs.
 * - A call that fails does not keep the next ones from running. Each is judged on the state that it
 *   finds: a `decode` made after a `prefill` that failed is `not_prefilled`.
 * - `dispose` does not wait. The call that is running and those that wait reject with `disposed`.
 * - `state` and the methods of a cache do not wait either. They answer from the rows that are
 *   committed at that moment.
 *
 * Different sessions take turns, step by step.
 *
 * A signal that is already aborted when the call is made has the same effect as one that is aborted
 * later: the call rejects with `aborted`, and a generation ends with `stop: 'aborted'`.
 */
import type { KvCache, Model, Session } from './core-api.js';
import type {
  CoreCacheMethod,
  CoreModelMethod,
  CoreSessionMethod,
  Promised,
} from './engine/protocol/methods.js';
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

/** One turn of a conversation, as the checkpoint's chat template takes it. */
export interface ChatMessage {
  /** Usually `system`, `user` or `assistant`. */
  readonly role: string;
  /** The text of the turn. */
  readonly content: string;
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

/**
 * A model in the worker. `parameters`, `readRows`, `updateParameter` and `hash` are those of
 * `Model` of `kvlens/core`.
 */
export interface EngineModel extends AsyncDisposable, Promised<Pick<Model, CoreModelMethod>> {
  /** The model's sizes and options. */
  readonly config: Config;
  /** Where the model comes from, and its size. */
  readonly info: EngineModelInfo;
  /** The tokenizer's description; undefined if the checkpoint has no tokenizer. */
  readonly tokenizer: TokenizerInfo | undefined;

  /**
   * Resolves to the ids of `text`. With `addSpecial`, the default, they include the BOS and EOS
   * that the file asks for. Errors: no_tokenizer, invalid_argument.
   */
  tokenize(
    text: string,
    options?: { readonly addSpecial?: boolean },
  ): Promise<Uint32Array<ArrayBuffer>>;
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
   * Writes a conversation as text with the checkpoint's own template. `addGenerationPrompt`, true
   * by default, adds the beginning of the assistant's answer. Errors: no_tokenizer,
   * no_chat_template, chat_template_failed.
   */
  applyChatTemplate(
    messages: readonly ChatMessage[],
    options?: { readonly addGenerationPrompt?: boolean },
  ): Promise<string>;

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

/** A model's description for people. */
export interface EngineModelInfo {
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
 * A key/value cache in the worker. `len`, `tokens`, `contentHashes` and `prefixHashes` are those of
 * `KvCache` of `kvlens/core`. All methods answer at once, even while a session of the cache runs a
 * call, with the rows that are committed at that moment.
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

/**
 * How far a call has come, in tokens. `done` never decreases and ends at `total`. A replay takes
 * all of its tokens through one layer after another, so its `done` has fractions.
 */
export interface CallProgress {
  /** Tokens that are done. */
  readonly done: number;
  /** Tokens of the whole call. */
  readonly total: number;
}

/** Options of calls that can take long. */
export interface LongCallOptions {
  /**
   * Stops the call, which then rejects with `aborted`, the signal's reason as its cause; the
   * session is as it was before. A call that waits for its turn stops at once. A running call sees
   * the signal after each step: up to `chunkRows` tokens through all layers in a forward call, or
   * through one layer in a replay. `decode` is one step, so it can only be stopped while it waits.
   */
  readonly signal?: AbortSignal;
  /**
   * Is called after steps, at most about a hundred times in a replay. The call goes on when it has
   * returned. If it throws, the call is aborted and rejects with its error.
   */
  readonly onProgress?: (progress: CallProgress) => void;
}

/**
 * What a forward call reads from the session once it has succeeded and returns with its step, so
 * that a page gets all of it with one message. If a read fails, the whole call fails and the
 * session is as it was before.
 */
export interface StepReads {
  /**
   * How many of the most likely next tokens to return. A number above the vocabulary's size returns
   * all of them.
   */
  readonly topTokens?: number;
  /**
   * Numbers of rows, each from 0 to the cache's new length. The step then has the content hashes of
   * that many first rows, as `KvCache.prefixHashes` of `kvlens/core` gives them. Errors:
   * invalid_length.
   */
  readonly prefixHashes?: readonly number[];
  /**
   * Whether to return the text of the call's tokens, and of each of `topTokens`. The default is
   * false. Errors: no_tokenizer.
   */
  readonly pieces?: boolean;
}

/** Options of one forward call. */
export interface CallOptions extends StepOptions, StepReads, LongCallOptions {}

/** A candidate for the next token, with its text if that was asked for. */
export interface RankedPiece extends RankedToken {
  /** The token's own piece of text; absent for an id that the tokenizer does not know. */
  readonly piece?: string;
}

/** The results of `StepReads`. Each is present if it was asked for. */
export interface StepReadings {
  /** The most likely next tokens, most likely first, ties by id. */
  readonly topTokens?: readonly RankedPiece[];
  /** For each number of rows that was given: the hash of every layer's first so many rows. */
  readonly prefixHashes?: readonly (readonly string[])[];
  /** One for each token of the call; undefined for an id that the tokenizer does not know. */
  readonly pieces?: readonly (string | undefined)[];
}

/** What one forward call did, and what it read for the page. */
export interface EngineStep extends Step, StepReadings {}

/** The state of a session at one moment. */
export interface SessionState {
  /** Rows in the cache. */
  readonly kvLen: number;
  /** Rows that the cache can hold. */
  readonly capacity: number;
  /** Ids of the rows, `[kvLen]`. */
  readonly tokens: Uint32Array<ArrayBuffer>;
  /** Work of all calls since binding or `reset`, without what an abort or an error has undone. */
  readonly work: Work;
  /** Whether there are logits to read, to sample from and to verify. */
  readonly hasLogits: boolean;
  /** The call that gave the logits; undefined after binding, `reset` and `truncate`. */
  readonly lastStep: StepInfo | undefined;
  /** Whether a call is running. */
  readonly callInProgress: boolean;
}

/**
 * One model bound to one cache in the worker. `truncate`, `reset`, `work`, `logits` and `topTokens`
 * are those of `Session` of `kvlens/core`. Calls run in the order made; see the top of this file.
 */
export interface EngineSession extends AsyncDisposable, Promised<Pick<Session, CoreSessionMethod>> {
  /** The model that it runs. */
  readonly model: EngineModel;
  /** The cache that it reads and extends. */
  readonly cache: EngineCache;
  /** The type that it computes in. */
  readonly compute: ComputeType;
  /** Rows that the cache can hold. */
  readonly capacity: number;

  /**
   * Runs several tokens on an empty cache. Errors: those of `Session.prefill` of `kvlens/core`,
   * those of `StepReads`, aborted.
   */
  prefill(tokens: TokenIds, options?: CallOptions): Promise<EngineStep>;
  /**
   * Runs one token and appends its row to a filled cache. Errors: those of `Session.decode`, those
   * of `StepReads`, aborted.
   */
  decode(token: number, options?: CallOptions): Promise<EngineStep>;
  /**
   * Runs several tokens and appends their rows to a filled cache. Errors: those of
   * `Session.extend`, those of `StepReads`, aborted.
   */
  extend(tokens: TokenIds, options?: CallOptions): Promise<EngineStep>;
  /**
   * Runs a complete-prefix forward pass without the cache, as `Session.replay` does. Errors: its
   * own, aborted.
   */
  replay(options?: EngineReplayOptions): Promise<Replay>;
  /**
   * Replays all tokens and resolves to the attention weights of some layers, in the order of
   * `layers`: `[layers.length, nHeads, kvLen, kvLen]`. Errors: those of `replay`.
   */
  attentionMaps(layers: readonly number[], options?: LongCallOptions): Promise<Tensor>;
  /**
   * Replays all tokens and compares the logits with the session's, byte by byte. Errors: no_logits,
   * those of `replay`.
   */
  verify(options?: LongCallOptions): Promise<Verification>;
  /**
   * Replays each prefix that the session has run and compares the work with the session's.
   * Progress counts the tokens of all prefixes. Errors: those of `Session.contrast`, aborted.
   */
  contrast(options?: LongCallOptions): Promise<Contrast>;

  /** Resolves to the state at this moment, without waiting for other calls. */
  state(): Promise<SessionState>;
  /**
   * Chooses the next token without decoding it. Give the returned `rngState` to the next choice;
   * the default is 0. Errors: no_logits, invalid_sampling, non_finite_value.
   */
  sample(
    sampling: SamplingOptions,
    rngState?: bigint,
  ): Promise<{ readonly draw: Draw; readonly rngState: bigint }>;
  /**
   * Streams new tokens after a prompt. The prompt is compared with the tokens that the cache holds:
   * the rows of their common beginning are kept, the other rows are dropped, and only the rest of
   * the prompt is run. After an error or an abort the session is as it was before.
   */
  generate(request: EngineGenerateRequest): GenerationStream;
  /**
   * Releases the model, and the cache if this session owns it. Calls that run or wait reject with
   * `disposed`. Calling it again does nothing.
   */
  dispose(): Promise<void>;
}

/** Options of `EngineSession.replay`. */
export interface EngineReplayOptions extends CaptureOptions, LongCallOptions {
  /** The tokens to run. The default is the session's own. */
  readonly tokens?: TokenIds;
  /** Whether to return logits after every token and not only after the last. */
  readonly allLogits?: boolean;
}

/** What to generate. Exactly one of `prompt`, `messages` and `tokens` must be given. */
export interface EngineGenerateRequest extends SamplingOptions, CaptureOptions {
  /** Text, which is tokenized with the BOS that the file asks for. */
  readonly prompt?: string;
  /** A conversation, which the checkpoint's own template writes as text. */
  readonly messages?: readonly ChatMessage[];
  /** Ids, which are taken as they are. */
  readonly tokens?: TokenIds;
  /** The most tokens to generate. The default is 256. */
  readonly maxNewTokens?: number;
  /** Texts that end the generation. The one that is found and what follows are not returned. */
  readonly stop?: readonly string[];
  /** Ids that end the generation. The default is the tokenizer's own. */
  readonly eosTokens?: readonly number[];
  /** The default is 0. The same seed and model give the same tokens everywhere. */
  readonly seed?: bigint | number;
  /** How many of the most likely tokens to return with each token. The default is 0. */
  readonly logprobs?: number;
  /**
   * Whether to return the piece of text of each token and of each of its `topTokens`. The default
   * is false. Errors: no_tokenizer.
   */
  readonly pieces?: boolean;
  /**
   * Rows of evidence to return with each token. `last`, the default, is the row that the token's
   * logits come from.
   */
  readonly rows?: 'all' | 'last';
  /** Is called after each chunk of the prompt that is run. */
  readonly onProgress?: (progress: CallProgress) => void;
  /**
   * Stops the generation between two chunks of the prompt or two tokens, or before it begins. The
   * stream then ends, its result has `stop: 'aborted'`, and the session is as it was before.
   * Leaving a loop over the stream early has the same effect.
   */
  readonly signal?: AbortSignal;
}

/** One generated token. */
export interface GeneratedToken {
  /** Its id. */
  readonly token: number;
  /** What it adds to the text. A character is never split, so this may be empty. */
  readonly text: string;
  /** The natural logarithm of its probability among all tokens. */
  readonly logprob: number;
  /** The most likely tokens at this point, if `logprobs` is above 0. */
  readonly topTokens?: readonly RankedPiece[];
  /** The token's own piece of text, if `pieces` is true. */
  readonly piece?: string;
  /** How it was chosen. */
  readonly draw: Draw;
  /** The position that this token will have once it is decoded. */
  readonly position: number;
  /** Rows in the cache when it was chosen. */
  readonly kvLen: number;
  /** The call whose logits it was chosen from. */
  readonly step: StepInfo;
  /** The work of that call. */
  readonly work: Work;
  /** The evidence of that call, if `capture` asks for it. */
  readonly evidence?: Evidence;
}

/** How a generation ended. */
export interface GenerationResult {
  /** The new tokens, including the one that ended the generation. Empty after an abort. */
  readonly tokens: Uint32Array<ArrayBuffer>;
  /** The text of the new tokens, without special tokens and stop texts. */
  readonly text: string;
  /**
   * Why it ended. If several reasons hold at once, the first of `eos`, `stop_string`, `token_limit`
   * and `context_limit` is given.
   */
  readonly stop: 'eos' | 'stop_string' | 'token_limit' | 'context_limit' | 'aborted';
  /** Number of tokens of the prompt. */
  readonly promptTokens: number;
  /** Tokens of the prompt whose rows were already in the cache. */
  readonly reusedTokens: number;
  /** Rows in the cache afterwards. */
  readonly kvLen: number;
  /** Work done by this call alone. */
  readonly work: Work;
  /** Wall time of the call once its turn came, in milliseconds. */
  readonly milliseconds: number;
  /** State of the random generator afterwards. */
  readonly rngState: bigint;
}

/**
 * A stream of generated tokens. Generation starts in its turn and runs a single time, even if you
 * never iterate.
 */
export interface GenerationStream extends AsyncIterable<GeneratedToken> {
  /** Settles when the generation ends. After an abort it resolves, with `stop: 'aborted'`. */
  readonly result: Promise<GenerationResult>;
}
