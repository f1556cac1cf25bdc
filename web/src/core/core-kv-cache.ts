/** `KvCache` of the public interface, implemented by the module's cache. */
import type { CacheOptions, KvCache, LayerKvCache } from '../core-api.js';
import { KvLensError } from '../errors.js';
import type { KvCache as RawKvCache } from '../kvlens-simd.js';
import type { ComputeType, Config, FloatArray, KvDType } from '../types.js';
import * as check from './arguments.js';
import { OwnedHandle } from './owned-handle.js';
import { allocating, copyOf, unwrap, type Instance } from './instance.js';
import { hex64 } from './model-hash.js';
import type { CoreModel } from './core-model.js';

export class CoreKvCache<C extends ComputeType>
  extends OwnedHandle<RawKvCache>
  implements KvCache<C>
{
  readonly compute: C;
  readonly kvDtype: KvDType;
  readonly config: Config;
  readonly capacity: number;
  readonly bytes: number;
  /** Number of sessions bound to it now. */
  bound = 0;

  private constructor(
    instance: Instance,
    raw: RawKvCache,
    compute: C,
    kvDtype: KvDType,
    config: Config,
  ) {
    super(instance, raw, 'KvCache');
    this.compute = compute;
    this.kvDtype = kvDtype;
    this.config = config;
    this.capacity = instance.call(() => raw.capacity());
    this.bytes = instance.call(() => raw.bytes());
  }

  static create<C extends ComputeType>(
    instance: Instance,
    model: CoreModel,
    options: CacheOptions<C>,
  ): CoreKvCache<C> {
    const compute = check.compute(options.compute ?? 'f32') as C;
    const capacity = check.count('capacity', options.capacity ?? model.config.maxSeqLen);
    const kvDtype = check.dtype('kvDtype', options.kvDtype ?? compute);
    const raw = instance.call((module) =>
      unwrap(module.createCache(model.raw, compute === 'f64', capacity, kvDtype)),
    );
    // The core has refused every other dtype.
    return new CoreKvCache(instance, raw, compute, kvDtype as KvDType, model.config);
  }

  get nLayers(): number {
    return this.config.nLayers;
  }

  get len(): number {
    const { raw } = this;
    return this.instance.call(() => raw.len());
  }

  tokens(): Uint32Array<ArrayBuffer> {
    const { raw } = this;
    return copyOf(this.instance.call(() => raw.tokensView())) as Uint32Array<ArrayBuffer>;
  }

  layer(index: number): CoreLayer<C> {
    void this.raw;
    return new CoreLayer(this.instance, this, check.index('layer', index, this.nLayers));
  }

  contentHashes(nRows: number = this.len): string[] {
    return this.prefixHashes([check.count('nRows', nRows)])[0]!;
  }

  prefixHashes(lengths: readonly number[]): string[][] {
    const layers = Array.from({ length: this.nLayers }, (_, index) =>
      this.layer(index).contentHashes(lengths),
    );
    return lengths.map((_, i) => layers.map((hashes) => hashes[i]!));
  }

  protected override checkUnused(): void {
    if (this.bound !== 0) {
      throw new KvLensError(
        'cache_in_use',
        { count: this.bound },
        'a session is bound to the cache; dispose of it first',
      );
    }
  }
}

class CoreLayer<C extends ComputeType> implements LayerKvCache<C> {
  readonly index: number;
  readonly #instance: Instance;
  readonly #cache: CoreKvCache<C>;

  constructor(instance: Instance, cache: CoreKvCache<C>, index: number) {
    this.#instance = instance;
    this.#cache = cache;
    this.index = index;
  }

  get len(): number {
    const { raw } = this.#cache;
    return this.#instance.call(() => raw.layerLen(this.index));
  }

  keys(kvHead?: number): FloatArray<C> {
    return this.#rows('readKeys', kvHead);
  }

  values(kvHead?: number): FloatArray<C> {
    return this.#rows('readValues', kvHead);
  }

  keyRow(kvHead: number, position: number): FloatArray<C> {
    return this.#row('readKeys', kvHead, position);
  }

  valueRow(kvHead: number, position: number): FloatArray<C> {
    return this.#row('readValues', kvHead, position);
  }

  contentHash(nRows: number = this.len): string {
    return this.contentHashes([check.count('nRows', nRows)])[0]!;
  }

  /** Returns `contentHash` for each of several lengths. */
  contentHashes(lengths: readonly number[]): string[] {
    const { raw } = this.#cache;
    const { len } = this;
    const given = check.counts('lengths', lengths);
    for (const nRows of given) {
      if (nRows <= len) continue;
      throw new KvLensError(
        'invalid_length',
        { value: nRows, limit: len },
        `cannot hash ${nRows} rows, the layer holds ${len}`,
      );
    }
    return this.#instance.call(() => raw.contentHashes(this.index, given)).map(hex64);
  }

  /** Copies all rows of one head, or of every head, `[.., len, headDim]`. */
  #rows(read: 'readKeys' | 'readValues', kvHead: number | undefined): FloatArray<C> {
    const { nKvHeads } = this.#cache.config;
    const { len } = this;
    if (kvHead === undefined)
      return this.#read(
        read,
        Array.from({ length: nKvHeads }, (_, head) => head),
        0,
        len,
      );
    return this.#read(read, [check.index('kvHead', kvHead, nKvHeads)], 0, len);
  }

  #row(read: 'readKeys' | 'readValues', kvHead: number, position: number): FloatArray<C> {
    check.index('position', position, this.len);
    return this.#read(
      read,
      [check.index('kvHead', kvHead, this.#cache.config.nKvHeads)],
      position,
      1,
    );
  }

  /** Copies rows `[rowBegin, rowBegin + nRows)` of heads, `[heads.length, nRows, headDim]`. */
  #read(
    read: 'readKeys' | 'readValues',
    heads: readonly number[],
    rowBegin: number,
    nRows: number,
  ): FloatArray<C> {
    const { raw, config, compute } = this.#cache;
    const size = nRows * config.headDim;
    const rows = allocating(8 * size * heads.length, () =>
      compute === 'f64'
        ? new Float64Array(size * heads.length)
        : new Float32Array(size * heads.length),
    );
    heads.forEach((head, i) => {
      const out = rows.subarray(i * size, (i + 1) * size);
      this.#instance.call(() => unwrap(raw[read](this.index, head, rowBegin, out)));
    });
    return rows as FloatArray<C>;
  }
}
