/** The page's side of the engine. */
import { KvLensError } from '../../errors.js';
import type {
  Engine,
  EngineModel,
  EngineOptions,
  LoadOptions,
  ModelSource,
} from '../../engine-api.js';
import type { ConfigInput, MemoryInfo, ModuleInfo } from '../../types.js';
import { Connection } from './connection.js';
import { RemoteModel } from './remote-model.js';
import { portableSource } from './portable-source.js';

/**
 * Starts a worker that runs the module on as many threads as the page may use. Errors:
 * invalid_argument, unsupported_environment, module_load_failed, worker_died (the worker's file
 * could not be loaded).
 */
export async function createEngine({
  createWorker,
  ...options
}: EngineOptions = {}): Promise<Engine> {
  const connection = await Connection.open(createWorker);
  try {
    const wasm = options.wasm instanceof URL ? options.wasm.href : options.wasm;
    const info = await connection.callEngine('start', [
      { ...options, ...(wasm !== undefined && { wasm }) },
    ]);
    return new RemoteEngine(connection, info);
  } catch (error) {
    await connection.dispose();
    throw error;
  }
}

class RemoteEngine implements Engine {
  readonly info: ModuleInfo;
  readonly #connection: Connection;

  constructor(connection: Connection, info: ModuleInfo) {
    this.#connection = connection;
    this.info = info;
  }

  get ended(): Promise<void> {
    return this.#connection.ended;
  }

  async loadModel(
    source: ModelSource,
    { signal, onProgress, cache = false }: LoadOptions = {},
  ): Promise<EngineModel> {
    const description = await this.#connection.callEngine(
      'loadModel',
      [portableSource(source), cache],
      { signal, onProgress },
    );
    return new RemoteModel(this.#connection, description);
  }

  async randomModel(
    config: ConfigInput,
    { seed, dtype = 'f32' }: { readonly seed: bigint | number; readonly dtype?: 'f64' | 'f32' },
  ): Promise<EngineModel> {
    if (typeof seed === 'number' && !Number.isSafeInteger(seed)) {
      const context = { field: 'seed', value: String(seed), allowed: 'integers and bigints' };
      throw new KvLensError(
        'invalid_argument',
        context,
        `seed is ${seed}; allowed: ${context.allowed}`,
      );
    }
    const state = typeof seed === 'number' ? BigInt.asUintN(64, BigInt(seed)) : seed;
    return new RemoteModel(
      this.#connection,
      await this.#connection.callEngine('randomModel', [config, state, dtype]),
    );
  }

  memory(): Promise<MemoryInfo> {
    return this.#connection.callEngine('memory', []);
  }

  dispose(): Promise<void> {
    return this.#connection.dispose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
