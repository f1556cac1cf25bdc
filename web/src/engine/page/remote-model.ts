/** The page's side of a model. */
import { KvLensError } from '../../errors.js';
import type {
  ChatMessage,
  EngineCache,
  EngineCacheOptions,
  EngineModel,
  EngineModelInfo,
  EngineSession,
  EngineSessionOptions,
  TokenizerInfo,
} from '../../engine-api.js';
import type { Config, DType, ParameterInfo, TokenIds } from '../../types.js';
import type { Connection } from './connection.js';
import type { ModelDescription } from '../protocol/messages.js';
import { RemoteCache } from './remote-cache.js';
import { RemoteSession } from './remote-session.js';

export class RemoteModel implements EngineModel {
  readonly config: Config;
  readonly info: EngineModelInfo;
  readonly tokenizer: TokenizerInfo | undefined;
  readonly #connection: Connection;
  readonly #id: number;

  constructor(connection: Connection, { id, config, info, tokenizer }: ModelDescription) {
    this.#connection = connection;
    this.#id = id;
    this.config = config;
    this.info = info;
    this.tokenizer = tokenizer;
  }

  async tokenize(
    text: string,
    { addSpecial = true }: { readonly addSpecial?: boolean } = {},
  ): Promise<Uint32Array<ArrayBuffer>> {
    return (await this.#connection.call('tokenize', [
      this.#id,
      text,
      addSpecial,
    ])) as Uint32Array<ArrayBuffer>;
  }

  detokenize(tokens: TokenIds): Promise<string> {
    return this.#connection.call('detokenize', [this.#id, tokens]);
  }

  pieces(tokens: TokenIds): Promise<string[]> {
    return this.#connection.call('pieces', [this.#id, tokens]);
  }

  applyChatTemplate(
    messages: readonly ChatMessage[],
    { addGenerationPrompt = true }: { readonly addGenerationPrompt?: boolean } = {},
  ): Promise<string> {
    return this.#connection.call('applyChatTemplate', [this.#id, messages, addGenerationPrompt]);
  }

  parameters(): Promise<ParameterInfo[]> {
    return this.#connection.call('parameters', [this.#id]);
  }

  async readRows(
    name: string,
    rowBegin: number,
    nRows: number,
  ): Promise<Float64Array<ArrayBuffer>> {
    return (await this.#connection.call('readRows', [
      this.#id,
      name,
      rowBegin,
      nRows,
    ])) as Float64Array<ArrayBuffer>;
  }

  updateParameter(parameter: {
    readonly name: string;
    readonly dtype: DType;
    readonly data: ArrayBufferView | ArrayBuffer;
  }): Promise<void> {
    return this.#connection.call('updateParameter', [this.#id, parameter]);
  }

  hash(): Promise<string> {
    return this.#connection.call('modelHash', [this.#id]);
  }

  async createCache(options: EngineCacheOptions = {}): Promise<EngineCache> {
    return new RemoteCache(
      this.#connection,
      await this.#connection.call('createCache', [this.#id, options]),
    );
  }

  async bind(cache: EngineCache, options: EngineSessionOptions = {}): Promise<EngineSession> {
    if (!(cache instanceof RemoteCache) || cache.connection !== this.#connection) {
      const allowed = 'a cache made by a model of this engine';
      throw new KvLensError(
        'invalid_argument',
        { field: 'cache', value: String(cache), allowed },
        `cache is not ${allowed}`,
      );
    }
    const bound = await this.#connection.call('bind', [this.#id, cache.id, options]);
    return new RemoteSession(this.#connection, this, bound, cache);
  }

  async createSession(
    options: EngineCacheOptions & EngineSessionOptions = {},
  ): Promise<EngineSession> {
    return new RemoteSession(
      this.#connection,
      this,
      await this.#connection.call('createSession', [this.#id, options]),
    );
  }

  dispose(): Promise<void> {
    return this.#connection.call('disposeModel', [this.#id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
