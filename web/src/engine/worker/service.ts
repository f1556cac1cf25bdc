/**
 * The worker's side of the engine: one instance of the module, and its models, caches and sessions
 * by number.
 */
import * as check from '../../core/arguments.js';
import { startCore } from '../../core/core.js';
import type { Core } from '../../core-api.js';
import type { EngineCacheOptions, EngineSessionOptions } from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import type { ConfigInput, MemoryInfo, ModuleInfo, ModuleOptions } from '../../types.js';
import type {
  CacheDescription,
  CallRequest,
  ModelDescription,
  SessionDescription,
} from '../protocol/messages.js';
import type { PortableSource } from '../protocol/portable-source.js';
import type { Call } from './call.js';
import { WorkerCache } from './worker-cache.js';
import { WorkerModel } from './worker-model.js';
import { WorkerSession } from './worker-session.js';

/** Rows of a cache by default. A longer cache takes memory that few prompts need. */
const DEFAULT_CAPACITY = 4096;

/** An object of the worker that the page calls by its number. */
interface Served {
  serve(method: string, call: Call, args: readonly unknown[]): unknown;
  dispose(): void;
}

class Table<T extends Served> {
  readonly #entries = new Map<number, T>();
  readonly #name: string;
  #next = 1;

  constructor(name: string) {
    this.#name = name;
  }

  add(entry: T): number {
    this.#entries.set(this.#next, entry);
    return this.#next++;
  }

  get(id: number): T {
    const entry = this.#entries.get(id);
    if (entry !== undefined) return entry;
    const name = this.#name;
    throw new KvLensError('disposed', { name }, `the ${name} has been disposed`);
  }

  /** Calling it again does nothing. */
  dispose(id: number): void {
    this.#entries.get(id)?.dispose();
    this.#entries.delete(id);
  }
}

type EngineMethod = (call: Call, ...args: unknown[]) => unknown;

export class Service {
  #core: Core | undefined;
  readonly #tables = {
    model: new Table<WorkerModel>('Model'),
    cache: new Table<WorkerCache>('KvCache'),
    session: new Table<WorkerSession>('Session'),
  };

  /** Runs the method that the page asks for. */
  serve({ on, object, method, args }: CallRequest, call: Call): unknown {
    if (on === 'engine') {
      return (this[method as keyof this] as EngineMethod).call(this, call, ...args);
    }
    const table = this.#tables[on];
    if (method === 'dispose') return table.dispose(object);
    return table.get(object).serve(method, call, args);
  }

  async start(_call: Call, options: ModuleOptions): Promise<ModuleInfo> {
    this.#core = await startCore(options, 'auto');
    return this.#core.info;
  }

  get #started(): Core {
    if (this.#core === undefined) throw new Error('the engine has not started');
    return this.#core;
  }

  memory(_call: Call): MemoryInfo {
    return this.#started.memory();
  }

  async loadModel(call: Call, source: PortableSource, cache: boolean): Promise<ModelDescription> {
    return this.#describeModel(await WorkerModel.load(this.#started, source, cache, call));
  }

  randomModel(
    _call: Call,
    config: ConfigInput,
    seed: bigint,
    dtype: 'f64' | 'f32',
  ): ModelDescription {
    const start = performance.now();
    const rng = { state: check.state64('seed', seed) };
    const model = this.#started.randomModel(config, { rng, dtype });
    const loadMilliseconds = performance.now() - start;
    const made = { name: 'random', format: 'random', architecture: 'llama' } as const;
    return this.#describeModel(new WorkerModel(model, { ...made, loadMilliseconds }));
  }

  #describeModel(model: WorkerModel): ModelDescription {
    const id = this.#tables.model.add(model);
    return { id, config: model.model.config, info: model.info, tokenizer: model.tokenizerInfo };
  }

  createCache(_call: Call, modelId: number, options: EngineCacheOptions): CacheDescription {
    const { model } = this.#tables.model.get(modelId);
    const capacity = options.capacity ?? Math.min(model.config.maxSeqLen, DEFAULT_CAPACITY);
    const cache = this.#started.createCache(model, { ...options, capacity });
    return this.#describeCache(this.#tables.cache.add(new WorkerCache(cache)));
  }

  #describeCache(id: number): CacheDescription {
    const { compute, kvDtype, capacity, nLayers, bytes } = this.#tables.cache.get(id).cache;
    return { id, compute, kvDtype, capacity, nLayers, bytes };
  }

  bind(
    _call: Call,
    modelId: number,
    cacheId: number,
    options: EngineSessionOptions,
  ): SessionDescription {
    return this.#bind(modelId, cacheId, options, () => {});
  }

  /** A session with a cache that is disposed with it. */
  createSession(
    call: Call,
    modelId: number,
    options: EngineCacheOptions & EngineSessionOptions,
  ): SessionDescription {
    const { id } = this.createCache(call, modelId, options);
    const disposeCache = (): void => this.#tables.cache.dispose(id);
    try {
      return this.#bind(modelId, id, options, disposeCache);
    } catch (error) {
      disposeCache();
      throw error;
    }
  }

  #bind(
    modelId: number,
    cacheId: number,
    options: EngineSessionOptions,
    onDispose: () => void,
  ): SessionDescription {
    const model = this.#tables.model.get(modelId);
    const { cache } = this.#tables.cache.get(cacheId);
    const session = this.#started.bind(model.model, cache, options);
    const served = new WorkerSession(this.#started, session, model, onDispose);
    return { id: this.#tables.session.add(served), cache: this.#describeCache(cacheId) };
  }
}
