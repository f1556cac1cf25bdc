/**
 * The one error type of the package.
 *
 * Every failure is a `KvLensError` with a `code` to branch on, a `context` whose type follows from
 * the code (where, the limit and the value), a sentence, and the wrapped error as `cause`. The
 * codes of the core are those of `core/include/kvlens/error.h`: the package does not compile while
 * the two lists differ.
 */

/** Context of errors that need none: their code says it all. */
export type NoContext = Record<string, never>;

/** A named field, the value found and what is allowed. */
export interface FieldContext {
  readonly field: string;
  readonly value: string;
  readonly allowed: string;
}

/** A name that was absent, unknown or given twice. */
export interface NameContext {
  readonly name: string;
}

/** A count or identity that differs from the expected one. */
export interface MismatchContext {
  readonly expected: number;
  readonly actual: number;
}

/** A layer whose property differs from the other layers' or from the model's. */
export interface LayerMismatchContext {
  readonly layer: number;
  readonly expected: number;
  readonly actual: number;
}

/** A tensor whose shape is not the expected one. */
export interface ShapeContext {
  readonly name: string;
  readonly expected: readonly number[];
  readonly actual: readonly number[];
}

/** A value beyond (or short of) a limit. */
export interface LimitContext {
  readonly value: number;
  readonly limit: number;
}

/** The number of objects that prevent the call. */
export interface CountContext {
  readonly count: number;
}

/** The size in bytes of an allocation that failed. */
export interface BytesContext {
  readonly bytes: number;
}

/** The first offending element of a tensor. */
export interface ValueContext {
  readonly tensor: string;
  readonly index: number;
  readonly value: number;
}

/** A token id outside the vocabulary, and where it stands in the call's tokens. */
export interface TokenContext {
  readonly position: number;
  readonly id: number;
  readonly vocabSize: number;
}

/** A parameter that is not the one the cache was made for. */
export interface IdentityContext {
  readonly index: number;
  readonly name: string;
}

/** A parameter that has changed since the cache was made. */
export interface RevisionContext {
  readonly index: number;
  readonly name: string;
  readonly captured: number;
  readonly current: number;
}

/** A place in the forward pass. */
export interface SiteContext {
  readonly stage: string;
  readonly layer: number;
  readonly position: number;
}

/** Context of every code of the C++ core, in the order of its table. */
export interface CoreErrorContexts {
  invalid_config: FieldContext;
  missing_parameter: NameContext;
  unknown_parameter: NameContext;
  duplicate_parameter: NameContext;
  parameter_shape_mismatch: ShapeContext;
  parameter_size_mismatch: MismatchContext;
  unsupported_dtype: NameContext;
  non_finite_parameter: ValueContext;
  parameter_borrowed: CountContext;
  out_of_memory: BytesContext;
  size_overflow: NoContext;
  work_overflow: NoContext;
  non_finite_value: ValueContext;
  zero_batch: NoContext;
  zero_capacity: NoContext;
  capacity_exceeds_max_seq_len: LimitContext;
  cache_full: LimitContext;
  cache_changed: MismatchContext;
  invalid_length: LimitContext;
  rank_mismatch: MismatchContext;
  not_a_single_token: MismatchContext;
  batch_mismatch: MismatchContext;
  width_mismatch: MismatchContext;
  shape_mismatch: ShapeContext;
  config_mismatch: FieldContext;
  parameter_count_mismatch: MismatchContext;
  parameter_identity_mismatch: IdentityContext;
  parameter_revision_mismatch: RevisionContext;
  layer_count_mismatch: MismatchContext;
  incoherent_lengths: LayerMismatchContext;
  layer_batch_mismatch: LayerMismatchContext;
  layer_capacity_mismatch: LayerMismatchContext;
  layer_geometry_mismatch: LayerMismatchContext;
  layer_rope_mismatch: LayerMismatchContext;
  empty_prompt: NoContext;
  prompt_exceeds_capacity: LimitContext;
  token_out_of_range: TokenContext;
  not_empty: CountContext;
  not_prefilled: NoContext;
  call_in_progress: NoContext;
  no_call_in_progress: NoContext;
  savepoint_ended: NoContext;
  interrupted: SiteContext;
  count_mismatch: FieldContext;
  cached_exceeds_replay: LimitContext;
  invalid_sampling: FieldContext;
  invalid_argument: FieldContext;
}

/** A field of a file: which file, which field, the value found and what is supported there. */
export interface FileContext extends FieldContext {
  readonly file: string;
}

/** Bytes that a file should hold but does not. */
export interface TruncatedContext {
  readonly file: string;
  /** Bytes that the file must have for what was being read. */
  readonly needed: number;
  /** Bytes that it has. */
  readonly size: number;
}

/** A request that failed; `status` is the HTTP status where there was a response. */
export interface NetworkContext {
  readonly url: string;
  readonly status?: number;
}

/** Context of every code of files, tokenizers and chat templates. */
export interface FileErrorContexts {
  /** The file contradicts its own format. */
  invalid_file: FileContext;
  /** The file is well formed, but asks for something that kvlens does not do. */
  unsupported_file: FileContext;
  /** The file ends before what it announces. */
  truncated_file: TruncatedContext;
  /** A file that the checkpoint needs was not given or is not there. */
  missing_file: NameContext;
  /** A request failed, or the resource changed while it was read. */
  network_error: NetworkContext;
  /** The caller's AbortSignal fired. */
  aborted: NoContext;
  /** A tokenizer's data contradict themselves. */
  invalid_tokenizer: FieldContext;
  /** kvlens does not support this kind of tokenizer. */
  unsupported_tokenizer: FieldContext;
  /** The checkpoint has no chat template. */
  no_chat_template: NoContext;
  /** The chat template cannot be parsed, or refused the messages. */
  chat_template_failed: NoContext;
  /** The environment has no storage for the download cache, or not enough. */
  cache_unavailable: NoContext;
}

/** Context of every code of handles, of the module as a whole, and of the worker engine. */
export interface RuntimeErrorContexts {
  /** The handle was disposed of. */
  disposed: NameContext;
  /** Sessions hold the model. */
  model_in_use: CountContext;
  /** A session is bound to the cache. */
  cache_in_use: CountContext;
  /** The session has no logits: no call has succeeded since binding, `reset` or `truncate`. */
  no_logits: NoContext;
  /** The session's calls are not one prefill and decodes. */
  no_schedule: NoContext;
  /** The module has trapped; only a fresh one works. */
  module_aborted: NoContext;
  /** The module could not be fetched, compiled or started. */
  module_load_failed: NameContext;
  /** This machine or page lacks something that was asked for. */
  unsupported_environment: FieldContext;
  /** Bytes that a model needs, and what the module's memory still has room for. */
  model_too_large: LimitContext;
  /** The checkpoint has no tokenizer. */
  no_tokenizer: NoContext;
  /** The engine's worker has ended. */
  worker_died: NoContext;
}

/** Codes of the C++ core. */
export type CoreErrorCode = keyof CoreErrorContexts;
/** Codes of files, tokenizers and chat templates. */
export type FileErrorCode = keyof FileErrorContexts;
/** Codes of handles, the module and the worker engine. */
export type RuntimeErrorCode = keyof RuntimeErrorContexts;

/** Context by code, for every code of the package. */
export interface ErrorContexts extends CoreErrorContexts, FileErrorContexts, RuntimeErrorContexts {}
/** Every code of the package. */
export type ErrorCode = keyof ErrorContexts;

/**
 * What every kvlens call throws or rejects with.
 *
 * Branch on `code`; `isKvLensError(error)` narrows an unknown value to the union of all codes, so
 * that `switch (error.code)` gives each branch its own type of `context`.
 */
export class KvLensError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'KvLensError';
  /** What went wrong. */
  readonly code: C;
  /** Where, the limit and the value. */
  readonly context: ErrorContexts[C];
  /** The place in the forward pass, when it was there that the call failed. */
  readonly site: SiteContext | undefined;

  constructor(
    code: C,
    context: ErrorContexts[C],
    message: string,
    cause?: unknown,
    site?: SiteContext,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.context = context;
    this.site = site;
  }
}

/** Union over the codes: narrowing `code` narrows `context`. */
export type AnyKvLensError = { [C in ErrorCode]: KvLensError<C> }[ErrorCode];

/** Whether `value` is an error of this package. */
export function isKvLensError(value: unknown): value is AnyKvLensError {
  return value instanceof KvLensError;
}
