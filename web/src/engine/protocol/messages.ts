/**
 * What crosses between the page and the worker.
 *
 * Comlink carries one function, `call(callId, method, args)`, which always resolves: to a value or
 * to an error in plain data, since a thrown error would lose its code, context and cause on the
 * way. While a call runs the worker sends events for it (progress, tokens); `abort(callId)` asks it
 * to stop. Models, caches and sessions are numbers.
 */
import {
  KvLensError,
  isKvLensError,
  type ErrorCode,
  type ErrorContexts,
  type SiteContext,
} from '../../errors.js';
import type { ComputeType, Config, KvDType, ModuleInfo } from '../../types.js';
import type {
  CallProgress,
  EngineModelInfo,
  GeneratedToken,
  LoadProgress,
  TokenizerInfo,
} from '../../engine-api.js';

/** An error as plain data. */
export interface PlainError {
  /** undefined for an error that is none of ours. */
  readonly code: ErrorCode | undefined;
  readonly context: object;
  readonly message: string;
  readonly site: SiteContext | undefined;
  readonly cause: PlainError | undefined;
}

export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: PlainError };

export type CallEvent =
  | { readonly kind: 'load'; readonly progress: LoadProgress }
  | { readonly kind: 'progress'; readonly progress: CallProgress }
  | { readonly kind: 'token'; readonly token: GeneratedToken };

/** What the worker needs to start. */
export interface WorkerStart {
  readonly info: ModuleInfo;
}

export interface ModelDescription {
  readonly id: number;
  readonly config: Config;
  readonly info: EngineModelInfo;
  readonly tokenizer: TokenizerInfo | undefined;
}

export interface CacheDescription {
  readonly id: number;
  readonly compute: ComputeType;
  readonly kvDtype: KvDType;
  readonly capacity: number;
  readonly nLayers: number;
  readonly bytes: number;
}

export interface SessionDescription {
  readonly id: number;
  readonly cache: CacheDescription;
}

/** The object that Comlink exposes. */
export interface WorkerPort {
  /** The one function that events are sent to. */
  listen(onEvent: (callId: number, event: CallEvent) => void): void;
  call(callId: number, method: string, args: unknown[]): Promise<Reply>;
  abort(callId: number, reason: unknown): void;
}

export function toPlainError(error: unknown): PlainError {
  const message = error instanceof Error ? error.message : String(error);
  const cause =
    error instanceof Error && error.cause !== undefined ? toPlainError(error.cause) : undefined;
  if (!isKvLensError(error))
    return { code: undefined, context: {}, message, site: undefined, cause };
  return { code: error.code, context: error.context, message, site: error.site, cause };
}

export function fromPlainError({ code, context, message, site, cause }: PlainError): Error {
  const inner = cause && fromPlainError(cause);
  if (code === undefined) return new Error(message, inner && { cause: inner });
  return new KvLensError(code, context as ErrorContexts[typeof code], message, inner, site);
}
