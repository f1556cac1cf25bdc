/** `Model` and `ModelBuilder` of the public interface, implemented by the module's objects. */
import type { Model, ModelBuilder, ParameterInput } from '../core-api.js';
import { KvLensError } from '../errors.js';
import type { Model as RawModel, ModelBuilder as RawBuilder } from '../kvlens-simd.js';
import type { Config, ConfigInput, DType, ParameterInfo, ParameterSpec, Rng } from '../types.js';
import { dtypes } from '../files/dtypes.js';
import * as check from './arguments.js';
import { OwnedHandle } from './owned-handle.js';
import { unwrap, type Instance } from './instance.js';
import { modelHash } from './model-hash.js';

export class CoreModel extends OwnedHandle<RawModel> implements Model {
  readonly config: Config;
  readonly #contentHashes: Map<string, bigint>;
  #hash: string | undefined;

  constructor(instance: Instance, raw: RawModel, contentHashes: Map<string, bigint>) {
    super(instance, raw, 'Model');
    this.config = instance.call(() => raw.config());
    this.#contentHashes = contentHashes;
  }

  static random(
    instance: Instance,
    config: ConfigInput,
    options: { rng: Rng; dtype?: 'f64' | 'f32' },
  ): CoreModel {
    const { rng } = options;
    const state = check.rngState(rng, false);
    const dtype = check.dtype('dtype', options.dtype ?? 'f32');
    const made = instance.call((module) =>
      unwrap(module.randomModel(check.config(config), state, dtype)),
    );
    rng.state = made.rngState;
    // Plain floats lie in memory as they would in a file.
    const hashes = instance.call(() =>
      made.model.parameters().map(({ name }, i) => [name, made.model.storedHash(i)] as const),
    );
    return new CoreModel(instance, made.model, new Map(hashes));
  }

  get hash(): string {
    this.#hash ??= modelHash(this.config, this.parameters(), this.#contentHashes);
    return this.#hash;
  }

  get liveSessions(): number {
    const { raw } = this;
    return this.instance.call(() => raw.liveSessions());
  }

  get parameterBytes(): number {
    const { raw } = this;
    return this.instance.call(() => raw.parameterBytes());
  }

  parameters(): ParameterInfo[] {
    const { raw } = this;
    return this.instance.call(() => raw.parameters()) as ParameterInfo[];
  }

  readRows(name: string, rowBegin: number, nRows: number): Float64Array<ArrayBuffer> {
    const { raw } = this;
    check.string('name', name);
    check.count('rowBegin', rowBegin);
    check.count('nRows', nRows);
    const found = this.parameters().find((parameter) => parameter.name === name);
    const cols = found?.shape.at(-1) ?? 0;
    return this.instance.call(() => unwrap(raw.readRows(name, rowBegin, nRows * cols)));
  }

  updateParameter(parameter: ParameterInput): void {
    const { raw } = this;
    const name = check.string('name', parameter.name);
    const dtype = check.dtype('dtype', parameter.dtype);
    const bytes = check.bytes('data', parameter.data);
    const hash = this.instance.call(() => unwrap(raw.updateParameter(name, dtype, bytes)));
    this.#contentHashes.set(name, hash);
    this.#hash = undefined;
  }

  protected override checkUnused(): void {
    const sessions = this.liveSessions;
    if (sessions !== 0) {
      throw new KvLensError(
        'model_in_use',
        { count: sessions },
        `${sessions} session${sessions === 1 ? ' holds' : 's hold'} the model; dispose of ${sessions === 1 ? 'it' : 'them'} first`,
      );
    }
  }
}

export class CoreModelBuilder extends OwnedHandle<RawBuilder> implements ModelBuilder {
  readonly specs: readonly ParameterSpec[];
  readonly #contentHashes = new Map<string, bigint>();
  /**
   * Of each parameter allocated and not sealed: its size, how much of it has been written, and up
   * to where. Memory comes uninitialised; what lies before `reached` is initialised.
   */
  readonly #open = new Map<string, { size: number; written: number; reached: number }>();

  constructor(instance: Instance, config: ConfigInput) {
    const checked = check.config(config);
    const raw = instance.call((module) => unwrap(module.createModelBuilder(checked)));
    super(instance, raw, 'ModelBuilder');
    this.specs = instance.call((module) => unwrap(module.parameterSpecs(checked)));
  }

  allocate(name: string, dtype: DType): number {
    const { raw } = this;
    check.string('name', name);
    check.dtype('dtype', dtype);
    const size = this.instance.call(() => unwrap(raw.allocate(name, dtype)));
    this.#open.set(name, { size, written: 0, reached: 0 });
    return size;
  }

  write(name: string, offset: number, bytes: Uint8Array): void {
    const { raw } = this;
    check.count('offset', offset);
    const chunk = check.bytes('bytes', bytes);
    const open = this.#opened(name);
    if (offset + chunk.length > open.size) throw wrongSize(name, open.size, offset + chunk.length);
    const memory = this.instance.call(() => raw.openView(name));
    if (offset > open.reached) memory.fill(0, open.reached, offset);
    memory.set(chunk, offset);
    open.written += chunk.length;
    open.reached = Math.max(open.reached, offset + chunk.length);
  }

  seal(name: string): void {
    const { raw } = this;
    const { size, written, reached } = this.#opened(name);
    // Bytes that were written twice do not make up for an end that was not.
    const given = reached === size ? written : reached;
    if (given !== size) throw wrongSize(name, size, given);
    this.#open.delete(name);
    this.#contentHashes.set(
      name,
      this.instance.call(() => unwrap(raw.seal(name))),
    );
  }

  add(parameter: ParameterInput): void {
    const { raw } = this;
    const { name, shape } = parameter;
    const dtype = check.dtype('dtype', parameter.dtype);
    const data = check.bytes('data', parameter.data);
    if (shape !== undefined) {
      const sizes = check.counts('shape', shape);
      this.instance.call(() => unwrap(raw.checkShape(check.string('name', name), sizes)));
    }
    const spec = this.specs.find((candidate) => candidate.name === name);
    const size = spec && storageBytes(spec, dtype);
    if (size !== undefined && size !== data.length) throw wrongSize(name, size, data.length);
    this.allocate(name, dtype);
    this.write(name, 0, data);
    this.seal(name);
  }

  finish(): CoreModel {
    const { raw } = this;
    const model = this.instance.call(() => unwrap(raw.finish()));
    const made = new CoreModel(this.instance, model, this.#contentHashes);
    this.dispose();
    return made;
  }

  #opened(name: string): { size: number; written: number; reached: number } {
    void this.raw;
    const open = this.#open.get(check.string('name', name));
    if (open === undefined) {
      throw new KvLensError(
        'missing_parameter',
        { name },
        `parameter "${name}" has not been allocated, or is sealed already`,
      );
    }
    return open;
  }
}

/**
 * Returns the size of a parameter in bytes, or undefined if a row is not a whole number of blocks,
 * which the core refuses.
 */
function storageBytes(spec: ParameterSpec, dtype: DType): number | undefined {
  const { blockValues, blockBytes } = dtypes[dtype];
  const blocksPerRow = spec.shape.at(-1)! / blockValues;
  if (!Number.isInteger(blocksPerRow)) return undefined;
  return (spec.shape.length === 1 ? 1 : spec.shape[0]!) * blocksPerRow * blockBytes;
}

function wrongSize(
  name: string,
  expected: number,
  actual: number,
): KvLensError<'parameter_size_mismatch'> {
  return new KvLensError(
    'parameter_size_mismatch',
    { expected, actual },
    `parameter "${name}" has ${expected} bytes, ${actual} were given`,
  );
}
