/** One instance of the module and what can be made with it. */
import type {
  CacheOptions,
  Core,
  KvCache,
  Model,
  ModelBuilder,
  ParameterInput,
  Session,
  SessionOptions,
} from '../core-api.js';
import { loadModule } from '../load-module.js';
import type {
  ComputeType,
  Config,
  ConfigInput,
  Contrast,
  MemoryInfo,
  ModuleInfo,
  ModuleOptions,
  ParameterSpec,
  Rng,
  Schedule,
  Variant,
} from '../types.js';
import { chooseVariant, type Choice } from '../variants.js';
import * as check from './arguments.js';
import { CoreKvCache } from './core-kv-cache.js';
import { contrastOf } from './contrast.js';
import { Instance, unwrap } from './instance.js';
import { CoreModel, CoreModelBuilder } from './core-model.js';
import { CoreSession } from './core-session.js';

/** The instance behind each core, for the package and its tests. */
const instances = new WeakMap<Core, Instance>();

export function instanceOf(core: Core): Instance {
  return instances.get(core)!;
}

/**
 * Loads and starts the module. The default of `threads` is 1.
 * Errors: module_load_failed, unsupported_environment, invalid_argument.
 */
export async function loadCore(options: ModuleOptions = {}): Promise<Core> {
  return startCore(options, 1);
}

export async function startCore(options: ModuleOptions, defaultThreads: 'auto' | 1): Promise<Core> {
  const choice = await chooseVariant(options, defaultThreads);
  try {
    return await start(choice, options.wasm);
  } catch (error) {
    const asked = options.variant !== undefined || options.wasm !== undefined;
    const wanted = options.threads ?? defaultThreads;
    if (choice.threads === 1 || wanted !== 'auto' || asked) throw error;
    return start(withoutThreads(choice, error), undefined);
  }
}

async function start(choice: Choice, wasm: ModuleOptions['wasm']): Promise<Core> {
  const { module, end } = await loadModule(choice, wasm);
  return new LoadedCore(new Instance(module, choice, end));
}

/** What to take where the build with threads turned out not to run. */
function withoutThreads({ variant, why }: Choice, error: unknown): Choice {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    variant: variant.replace('-mt', '') as Variant,
    threads: 1,
    why: [...why.slice(0, -1), `one thread: ${reason}`],
  };
}

class LoadedCore implements Core {
  readonly #instance: Instance;

  constructor(instance: Instance) {
    this.#instance = instance;
    instances.set(this, instance);
  }

  get info(): ModuleInfo {
    return this.#instance.info;
  }

  createModel(config: ConfigInput, parameters: Iterable<ParameterInput>): Model {
    const builder = new CoreModelBuilder(this.#instance, config);
    try {
      for (const parameter of parameters) builder.add(parameter);
      return builder.finish();
    } finally {
      builder.dispose();
    }
  }

  modelBuilder(config: ConfigInput): ModelBuilder {
    return new CoreModelBuilder(this.#instance, config);
  }

  randomModel(config: ConfigInput, options: { rng: Rng; dtype?: 'f64' | 'f32' }): Model {
    return CoreModel.random(this.#instance, config, options);
  }

  createCache<C extends ComputeType = 'f32'>(
    model: Model,
    options: CacheOptions<C> = {},
  ): KvCache<C> {
    return CoreKvCache.create(this.#instance, this.#ownModel(model), options);
  }

  bind<C extends ComputeType>(
    model: Model,
    cache: KvCache<C>,
    options: SessionOptions = {},
  ): Session<C> {
    return new CoreSession(
      this.#instance,
      this.#ownModel(model),
      this.#ownCache(cache),
      options,
      false,
    );
  }

  createSession<C extends ComputeType = 'f32'>(
    model: Model,
    options: CacheOptions<C> & SessionOptions = {},
  ): Session<C> {
    const ownModel = this.#ownModel(model);
    const cache = CoreKvCache.create(this.#instance, ownModel, options);
    try {
      return new CoreSession(this.#instance, ownModel, cache, options, true);
    } catch (error) {
      cache.dispose();
      throw error;
    }
  }

  parameterSpecs(config: ConfigInput): ParameterSpec[] {
    return this.#instance.call((module) => unwrap(module.parameterSpecs(check.config(config))));
  }

  contrast(config: Config, cached: Schedule, replay: Schedule): Contrast {
    return contrastOf(this.#instance, config, cached, replay);
  }

  memory(): MemoryInfo {
    return this.#instance.call((module) => ({
      liveHandles: this.#instance.liveHandles,
      liveBuffers: module.liveBuffers(),
      liveBytes: module.liveBytes(),
      heapBytes: module.heapBytes(),
    }));
  }

  dispose(): void {
    this.#instance.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Checks that a handle was made by this instance. Another's would mean nothing here. */
  #ownModel(model: Model): CoreModel {
    if (!(model instanceof CoreModel) || model.owner !== this.#instance) {
      throw check.invalidArgument('model', model, 'a Model made by this core');
    }
    return model;
  }

  #ownCache<C extends ComputeType>(cache: KvCache<C>): CoreKvCache<C> {
    if (!(cache instanceof CoreKvCache) || cache.owner !== this.#instance) {
      throw check.invalidArgument('cache', cache, 'a KvCache made by this core');
    }
    return cache;
  }
}
