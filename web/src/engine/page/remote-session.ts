/** The page's side of a session. */
import type {
  EngineCache,
  EngineGenerateRequest,
  EngineModel,
  EngineSession,
  GenerationStream,
} from '../../engine-api.js';
import type { ComputeType } from '../../types.js';
import { CORE_SESSION_METHODS, SESSION_METHODS } from '../../engine-session-api.js';
import type { Connection } from './connection.js';
import { remoteClass, RemoteObject } from './remote-object.js';
import { TokenStream } from './token-stream.js';

const methods = [...CORE_SESSION_METHODS, ...SESSION_METHODS, 'state'] as const;

export class RemoteSession
  extends remoteClass<EngineSession>()('session', methods)
  implements EngineSession
{
  readonly model: EngineModel;
  readonly cache: EngineCache;

  constructor(connection: Connection, id: number, model: EngineModel, cache: EngineCache) {
    super(connection, id);
    this.model = model;
    this.cache = cache;
  }

  get compute(): ComputeType {
    return this.cache.compute;
  }

  get capacity(): number {
    return this.cache.capacity;
  }

  generate({ signal, onProgress, ...request }: EngineGenerateRequest): GenerationStream {
    const left = new AbortController();
    const either = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]);
    return new TokenStream(
      (onToken) =>
        RemoteObject.call(this, 'generate', [request], { signal: either, onProgress, onToken }),
      (reason) => left.abort(reason),
    );
  }
}
