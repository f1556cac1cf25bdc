/**
 * The messages between the page and its worker.
 *
 * The page calls a method of the engine itself or of one of its models, caches and sessions, which
 * the worker numbers. While the call runs the worker may send events for it (progress, tokens). It
 * then sends one reply or one error, which ends the call. All of a call's messages have its id.
 *
 *     page                                          worker
 *     { id, on, object, method, args, ... }  --->
 *                                            <---   { id, event }     any number of them
 *     { id, handled: true }                  --->                     after each progress event
 *     { id, abort }                          --->                     at any time
 *                                            <---   { id, reply } or { id, error }
 *
 * Everything travels by one port in each direction, so messages arrive in the order in which they
 * were sent: calls reach the worker in the order made, and a reply follows its last event.
 *
 * A progress event is answered once the page's callback has returned. The worker waits for that
 * answer before its next step, so it has seen an abort by the callback by then. Token events are
 * not answered.
 *
 * An error travels as plain data, because a thrown error would lose its code and context.
 */
import type { Config, ComputeType, KvDType } from '../../types.js';
import type {
  CallProgress,
  EngineModelInfo,
  GeneratedToken,
  LoadProgress,
  TokenizerInfo,
} from '../../engine-api.js';
import type { PlainError } from './plain-error.js';

export type ObjectKind = 'engine' | 'model' | 'cache' | 'session';

/** Page to worker: run a method. */
export interface CallRequest {
  readonly id: number;
  readonly on: ObjectKind;
  /** The number of the model, cache or session; 0 for the engine. */
  readonly object: number;
  readonly method: string;
  readonly args: readonly unknown[];
  /** Whether the page wants progress events. */
  readonly listens: boolean;
  /** The reason, if the signal was already aborted when the call was made. */
  readonly abort: string | undefined;
}

/** Page to worker: stop a call. */
export interface AbortRequest {
  readonly id: number;
  readonly abort: string;
}

/** Page to worker: the callback for a progress event has returned. */
export interface HandledNotice {
  readonly id: number;
  readonly handled: true;
}

export type ToWorker = CallRequest | AbortRequest | HandledNotice;

export type CallEvent =
  | { readonly kind: 'progress'; readonly progress: CallProgress | LoadProgress }
  | { readonly kind: 'token'; readonly token: GeneratedToken };

export type ToPage =
  | { readonly id: number; readonly event: CallEvent }
  | { readonly id: number; readonly reply: unknown }
  | { readonly id: number; readonly error: PlainError };

/** What the page needs to know of a model that the worker has made. */
export interface ModelDescription {
  readonly id: number;
  readonly config: Config;
  readonly info: EngineModelInfo;
  readonly tokenizer: TokenizerInfo | undefined;
}

/** What the page needs to know of a cache. */
export interface CacheDescription {
  readonly id: number;
  readonly compute: ComputeType;
  readonly kvDtype: KvDType;
  readonly capacity: number;
  readonly nLayers: number;
  readonly bytes: number;
}

/** What the page needs to know of a session. */
export interface SessionDescription {
  readonly id: number;
  readonly cache: CacheDescription;
}
