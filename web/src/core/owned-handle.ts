/**
 * The base of all handles: they are counted, freed once, and refuse any use afterwards.
 */
import { KvLensError } from '../errors.js';
import type { Handle } from '../core-api.js';
import type { Instance } from './instance.js';

export interface RawHandle {
  delete(): void;
}

export abstract class OwnedHandle<Raw extends RawHandle> implements Handle {
  protected readonly instance: Instance;
  readonly #raw: Raw;
  readonly #kind: string;
  #disposed = false;

  protected constructor(instance: Instance, raw: Raw, kind: string) {
    this.instance = instance;
    this.#raw = raw;
    this.#kind = kind;
    instance.add(this, kind);
  }

  get owner(): Instance {
    return this.instance;
  }

  /** The module's own object. Errors: disposed. */
  get raw(): Raw {
    if (this.#disposed) {
      throw new KvLensError(
        'disposed',
        { name: this.#kind },
        `the ${this.#kind} has been disposed of`,
      );
    }
    return this.#raw;
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** Throws if something still needs this handle. */
  protected checkUnused(): void {}

  /** Frees what this handle owns besides its raw object. */
  protected releaseOwned(): void {}

  dispose(): void {
    if (this.#disposed) return;
    if (!this.instance.gone) {
      this.checkUnused();
      this.instance.call(() => this.#raw.delete());
    }
    this.#disposed = true;
    this.instance.remove(this);
    this.releaseOwned();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
