/**
 * One instance of the module: the only place that calls into it.
 *
 * `call` turns a trap into `module_aborted`, now and for every later call; `unwrap` turns a failure
 * of the core into a `KvLensError`. Handles register here, so that what is alive can be counted.
 */
import {
  KvLensError,
  type AnyKvLensError,
  type ErrorCode,
  type ErrorContexts,
  type SiteContext,
} from '../errors.js';
import type { Failure, MainModule, Outcome, ThreadPool } from '../kvlens-simd.js';
import type { ModuleInfo } from '../types.js';

/** Makes an error of a failure of the core. */
function toError(failure: Failure): AnyKvLensError {
  const code: ErrorCode = failure.code;
  return new KvLensError(
    code,
    failure.context as ErrorContexts[typeof code],
    failure.message,
    failure.cause === null ? undefined : toError(failure.cause),
    failure.site === null ? undefined : (failure.site as SiteContext),
  ) as AnyKvLensError;
}

/** Returns the value of an outcome, or throws its error. */
export function unwrap<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw toError(outcome);
  return outcome.value;
}

/** Runs a function that allocates in JavaScript. Errors: out_of_memory if that fails. */
export function allocating<T>(bytes: number, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new KvLensError(
      'out_of_memory',
      { bytes },
      `cannot allocate ${bytes} bytes for a result`,
      error,
    );
  }
}

/** Copies a view of the module's memory. Errors: out_of_memory. */
export function copyOf<A extends { slice(): A; readonly byteLength: number }>(view: A): A {
  return allocating(view.byteLength, () => view.slice());
}

export class Instance {
  readonly info: ModuleInfo;
  readonly pool: ThreadPool | null;
  #module: MainModule;
  #trap: unknown;
  #ended = false;
  #liveHandles = 0;
  readonly #end: () => void;
  readonly #forgotten: FinalizationRegistry<string>;

  /** `end` stops whatever threads the module has. */
  constructor(module: MainModule, info: Omit<ModuleInfo, 'version'>, end: () => void) {
    this.#module = module;
    this.#end = end;
    this.#forgotten = new FinalizationRegistry((kind) => {
      // eslint-disable-next-line no-console -- nobody is left to throw to
      console.warn(
        `kvlens: a ${kind} was collected without dispose(); its memory is lost until the module is`,
      );
    });
    this.info = { ...info, version: this.call((raw) => raw.version()) };
    const { threads } = info;
    this.pool = threads === 1 ? null : this.call((raw) => unwrap(raw.createThreadPool(threads)));
  }

  /**
   * Whether the module has trapped or was ended: its handles then have nothing left to give back.
   */
  get gone(): boolean {
    return this.#ended || this.#trap !== undefined;
  }

  get liveHandles(): number {
    return this.#liveHandles;
  }

  /** Calls into the module. Errors: module_aborted, disposed. */
  call<T>(run: (module: MainModule) => T): T {
    if (this.#ended)
      throw new KvLensError('disposed', { name: 'Core' }, 'the core has been disposed of');
    if (this.#trap !== undefined) throw this.#aborted();
    try {
      return run(this.#module);
    } catch (error) {
      // Anything else that leaves the module half-way is a stack overflow, which leaves it as
      // broken.
      if (!(error instanceof WebAssembly.RuntimeError) && !(error instanceof RangeError))
        throw error;
      this.#trap = error;
      throw this.#aborted();
    }
  }

  #aborted(): KvLensError<'module_aborted'> {
    return new KvLensError(
      'module_aborted',
      {},
      'the module has trapped and cannot be used any more; load a fresh one',
      this.#trap,
    );
  }

  /** Counts a handle, and warns when it is collected without `remove`. */
  add(handle: object, kind: string): void {
    ++this.#liveHandles;
    this.#forgotten.register(handle, kind, handle);
  }

  remove(handle: object): void {
    --this.#liveHandles;
    this.#forgotten.unregister(handle);
  }

  dispose(): void {
    if (this.#ended) return;
    if (!this.gone) this.pool?.delete();
    this.#ended = true;
    this.#end();
  }
}
