/** The page's side of a cache. */
import type { EngineCache } from '../../engine-api.js';
import type { ComputeType, KvDType } from '../../types.js';
import type { CacheDescription } from '../protocol/messages.js';
import { CORE_CACHE_METHODS } from '../protocol/methods.js';
import type { Connection } from './connection.js';
import { remoteClass } from './remote-object.js';

const methods = [...CORE_CACHE_METHODS, 'row', 'layer'] as const;

export class RemoteCache
  extends remoteClass<EngineCache>()('cache', methods)
  implements EngineCache
{
  readonly compute: ComputeType;
  readonly kvDtype: KvDType;
  readonly capacity: number;
  readonly nLayers: number;
  readonly bytes: number;

  constructor(
    connection: Connection,
    { id, compute, kvDtype, capacity, nLayers, bytes }: CacheDescription,
  ) {
    super(connection, id);
    this.compute = compute;
    this.kvDtype = kvDtype;
    this.capacity = capacity;
    this.nLayers = nLayers;
    this.bytes = bytes;
  }
}
