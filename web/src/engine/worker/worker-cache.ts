/** A cache in the worker. Its methods answer at once, with the rows that are committed then. */
import type { KvCache } from '../../core-api.js';
import type { CacheRow, EngineCache } from '../../engine-api.js';
import type { Tensor } from '../../types.js';
import type { Served } from '../protocol/methods.js';
import { CORE_CACHE_METHODS } from '../protocol/methods.js';
import type { Call } from './call.js';
import { callNamed, includes } from './call-named.js';

export class WorkerCache implements Served<EngineCache, 'row' | 'layer'> {
  readonly cache: KvCache;

  constructor(cache: KvCache) {
    this.cache = cache;
  }

  serve(method: string, call: Call, args: readonly unknown[]): unknown {
    if (includes(CORE_CACHE_METHODS, method)) return callNamed(this.cache, method, args);
    return callNamed(this, method, [call, ...args]);
  }

  row(_call: Call, layer: number, kvHead: number, position: number): CacheRow {
    const rows = this.cache.layer(layer);
    return { key: rows.keyRow(kvHead, position), value: rows.valueRow(kvHead, position) };
  }

  layer(_call: Call, index: number): { keys: Tensor; values: Tensor } {
    const layer = this.cache.layer(index);
    const shape = [this.cache.config.nKvHeads, layer.len, this.cache.config.headDim];
    return { keys: { data: layer.keys(), shape }, values: { data: layer.values(), shape } };
  }

  dispose(): void {
    this.cache.dispose();
  }
}
