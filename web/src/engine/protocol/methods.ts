/**
 * The methods that the page forwards to the worker as they are. Those of sessions are listed beside
 * their documentation, in engine-session-api.ts.
 *
 * A list is the only place that names a method between the public interface and the object that
 * answers it. The page makes its methods from these lists (`remoteClass`), their types come
 * from the public interfaces, and the worker calls the method of the same name.
 */
import type { KvCache, Model } from '../../core-api.js';
import type { EngineModel } from '../../engine-api.js';
import type { Call } from '../worker/call.js';

/** Methods and properties of the core's `Model` that the worker answers without code of its own. */
export const CORE_MODEL_METHODS = [
  'parameters',
  'readRows',
  'updateParameter',
  'hash',
] as const satisfies readonly (keyof Model)[];

/** The same for the core's `KvCache`. */
export const CORE_CACHE_METHODS = [
  'len',
  'tokens',
  'contentHashes',
  'prefixHashes',
] as const satisfies readonly (keyof KvCache)[];

/** Methods that `WorkerModel` adds. */
export const MODEL_METHODS = [
  'tokenize',
  'detokenize',
  'pieces',
  'applyChatTemplate',
] as const satisfies readonly (keyof EngineModel)[];

export type CoreModelMethod = (typeof CORE_MODEL_METHODS)[number];
export type CoreCacheMethod = (typeof CORE_CACHE_METHODS)[number];

/** `T` over messages: its methods return promises, its properties become methods. */
export type Promised<T> = {
  readonly [Name in keyof T]: T[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Result>
    : () => Promise<T[Name]>;
};

/** The worker's side of some methods of a public interface: each is given its call first. */
export type Served<T, Names extends keyof T> = {
  readonly [Name in Names]: T[Name] extends (...args: infer Args) => Promise<infer Result>
    ? (call: Call, ...args: Args) => Result | Promise<Result>
    : never;
};
