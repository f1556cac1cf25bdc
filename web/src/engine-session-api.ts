/** Sessions of the worker level, `kvlens`: their calls, options and results. */
import type { Session } from './core-api.js';
import type { ChatMessage, ChatTemplateOptions, EngineCache, EngineModel } from './engine-api.js';
import type { Promised } from './engine/protocol/methods.js';
import type {
  CaptureOptions,
  ComputeType,
  Contrast,
  Draw,
  Evidence,
  FloatArray,
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

/** Methods that the worker answers by the method of the core's session of the same name. */
export const CORE_SESSION_METHODS = [
  'truncate',
  'reset',
  'work',
  'logits',
  'topTokens',
] as const satisfies readonly (keyof Session)[];

type CoreSessionMethod = (typeof CORE_SESSION_METHODS)[number];

/** Methods that `WorkerSession` adds, or runs in steps. */
export const SESSION_METHODS = [
  'prefill',
  'decode',
  'extend',
  'replay',
  'attentionMaps',
  'verify',
  'contrast',
  'sample',
] as const satisfies readonly (keyof EngineSession)[];

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
 * One model bound to one cache in the worker.
 *
 * Its calls run one at a time, in the order in which they are made, whether or not the caller
 * awaits each of them:
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

  /**
   * Keeps the first `len` rows, 1 to the number held, and drops the others. There are no logits
   * until the next forward call; the counters go on. Errors: invalid_length.
   */
  truncate(len: number): Promise<void>;
  /** Drops all rows and sets the counters to zero, as if the session were freshly bound. */
  reset(): Promise<void>;
  /** Resolves to the work of all calls since binding or `reset`. */
  work(): Promise<Work>;
  /** Resolves to the logits after the last row, `[vocabSize]`. Errors: no_logits. */
  logits(): Promise<FloatArray>;
  /**
   * Resolves to the `n` most likely next tokens, most likely first, ties by id; all of them if `n`
   * is larger than the vocabulary. Errors: no_logits, invalid_argument.
   */
  topTokens(n: number): Promise<RankedToken[]>;
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
  /**
   * Text, which is tokenized with the BOS that the file asks for. A text that begins with BOS, as
   * chat templates write it, gets no second one.
   */
  readonly prompt?: string;
  /** Whether `prompt` gets BOS and EOS as the file asks for. The default is true. */
  readonly addSpecial?: boolean;
  /** Whether the names of control tokens in `prompt` become those tokens. The default is true. */
  readonly parseSpecial?: boolean;
  /** A conversation, which the checkpoint's own template writes as text. */
  readonly messages?: readonly ChatMessage[];
  /** Tools, documents and variables for the template that writes `messages`. */
  readonly template?: Omit<ChatTemplateOptions, 'addGenerationPrompt'>;
  /**
   * Whether the names of control tokens in the contents of `messages`, such as `<|im_end|>`, are
   * ordinary text. The default is false: they become those tokens.
   */
  readonly literalContent?: boolean;
  /** Ids, which are taken as they are. */
  readonly tokens?: TokenIds;
  /** The most tokens to generate. The default is 256. */
  readonly maxNewTokens?: number;
  /**
   * Texts that end the generation. The one that is found and what follows are not returned. They
   * may contain the names of control tokens, which are not part of the text otherwise.
   */
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
