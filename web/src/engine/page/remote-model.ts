/** The page's side of a model. */
import { KvLensError } from '../../errors.js';
import type {
  EngineCache,
  EngineCacheOptions,
  EngineModel,
  EngineModelInfo,
  EngineSession,
  EngineSessionOptions,
  TokenizerInfo,
} from '../../engine-api.js';
import type { Config } from '../../types.js';
import type { ModelDescription } from '../protocol/messages.js';
import { CORE_MODEL_METHODS, MODEL_METHODS } from '../protocol/methods.js';
import type { Connection } from './connection.js';
import { RemoteCache } from './remote-cache.js';
import { remoteClass, RemoteObject } from './remote-object.js';
import { RemoteSession } from './remote-session.js';

const methods = [...CORE_MODEL_METHODS, ...MODEL_METHODS] as const;

export class RemoteModel
  extends remoteClass<EngineModel>()('model', methods)
  implements EngineModel
{
  readonly config: Config;
  readonly info: EngineModelInfo;
  readonly tokenizer: TokenizerInfo | undefined;
  readonly #connection: Connection;
  readonly #id: number;

  constructor(connection: Connection, { id, config, info, tokenizer }: ModelDescription) {
    super(connection, id);
    this.#connection = connection;
    this.#id = id;
    this.config = config;
    this.info = info;
    this.tokenizer = tokenizer;
  }

  async createCache(options: EngineCacheOptions = {}): Promise<EngineCache> {
    const cache = await this.#connection.callEngine('createCache', [this.#id, options]);
    return new RemoteCache(this.#connection, cache);
  }

  async bind(cache: EngineCache, options: EngineSessionOptions = {}): Promise<EngineSession> {
    const cacheId =
      cache instanceof RemoteCache ? RemoteObject.idIn(this.#connection, cache) : undefined;
    if (cacheId === undefined) {
      const allowed = 'a cache made by a model of this engine';
      throw new KvLensError(
        'invalid_argument',
        { field: 'cache', value: String(cache), allowed },
        `cache is not ${allowed}`,
      );
    }
    const { id } = await this.#connection.callEngine('bind', [this.#id, cacheId, options]);
    return new RemoteSession(this.#connection, id, this, cache);
  }

  async createSession(
    options: EngineCacheOptions & EngineSessionOptions = {},
  ): Promise<EngineSession> {
    const { id, cache } = await this.#connection.callEngine('createSession', [this.#id, options]);
    return new RemoteSession(this.#connection, id, this, new RemoteCache(this.#connection, cache));
  }
}
