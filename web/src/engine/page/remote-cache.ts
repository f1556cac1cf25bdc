/** The page's side of a cache. */
import type { CacheRow, EngineCache } from '../../engine-api.js';
import type { ComputeType, KvDType, Tensor } from '../../types.js';
import type { CacheDescription } from '../protocol/messages.js';
import type { Connection } from './connection.js';

export class RemoteCache implements EngineCache {
  readonly id: number;
  readonly compute: ComputeType;
  readonly kvDtype: KvDType;
  readonly capacity: number;
  readonly nLayers: number;
  readonly bytes: number;
  readonly connection: Connection;

  constructor(
    connection: Connection,
    { id, compute, kvDtype, capacity, nLayers, bytes }: CacheDescription,
  ) {
    this.connection = connection;
    this.id = id;
    this.compute = compute;
    this.kvDtype = kvDtype;
    this.capacity = capacity;
    this.nLayers = nLayers;
    this.bytes = bytes;
  }

  len(): Promise<number> {
    return this.connection.call('cacheLen', [this.id]);
  }

  async tokens(): Promise<Uint32Array<ArrayBuffer>> {
    return (await this.connection.call('cacheTokens', [this.id])) as Uint32Array<ArrayBuffer>;
  }

  row(layer: number, kvHead: number, position: number): Promise<CacheRow> {
    return this.connection.call('cacheRow', [this.id, layer, kvHead, position]);
  }

  layer(index: number): Promise<{ keys: Tensor; values: Tensor }> {
    return this.connection.call('cacheLayer', [this.id, index]);
  }

  contentHashes(nRows?: number): Promise<string[]> {
    return this.connection.call('contentHashes', [this.id, nRows]);
  }

  prefixHashes(lengths: readonly number[]): Promise<string[][]> {
    return this.connection.call('prefixHashes', [this.id, lengths]);
  }

  dispose(): Promise<void> {
    return this.connection.call('disposeCache', [this.id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
