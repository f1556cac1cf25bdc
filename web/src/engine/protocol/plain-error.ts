/** Errors as plain data, which a message can carry without losing code, context or cause. */
import {
  KvLensError,
  isKvLensError,
  type ErrorCode,
  type ErrorContexts,
  type SiteContext,
} from '../../errors.js';

export interface PlainError {
  /** undefined for an error that is not a `KvLensError`. */
  readonly code: ErrorCode | undefined;
  readonly context: object;
  readonly message: string;
  readonly site: SiteContext | undefined;
  readonly cause: PlainError | undefined;
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
