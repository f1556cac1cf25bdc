/**
 * What the worker does: one instance of the module, and models, caches and sessions by number.
 * The page's side of every method is in the files named after what it returns.
 */
import * as check from '../../core/arguments.js';
import { startCore } from '../../core/core.js';
import type { Core, KvCache, ParameterInput, ReplayOptions } from '../../core-api.js';
import type {
  CacheRow,
  CallProgress,
  ChatMessage,
  EngineCacheOptions,
  EngineGenerateRequest,
  EngineSessionOptions,
  GenerationResult,
  LoadProgress,
  SessionState,
} from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import type {
  ConfigInput,
  Contrast,
  Draw,
  Evidence,
  FloatArray,
  MemoryInfo,
  ModuleInfo,
  ModuleOptions,
  ParameterInfo,
  RankedToken,
  Replay,
  SamplingOptions,
  Step,
  StepOptions,
  Tensor,
  TokenIds,
  Verification,
  Work,
} from '../../types.js';
import { generate, tokenRequest } from './generation.js';
import type {
  CacheDescription,
  CallEvent,
  ModelDescription,
  SessionDescription,
} from '../protocol/messages.js';
import type { PortableSource } from '../protocol/portable-source.js';
import { WorkerModel } from './worker-model.js';
import { aborted, WorkerSession, type Running } from './worker-session.js';

/** The call that a method serves. */
export interface Call {
  readonly signal: AbortSignal;
  /** Resolves when the page has had the event. */
  readonly emit: (event: CallEvent) => Promise<void>;
}

/**
 * Rows of a cache when nothing else is asked for: a longer one takes memory that few prompts need.
 */
const DEFAULT_CAPACITY = 4096;

class Table<T> {
  readonly #entries = new Map<number, T>();
  readonly #kind: string;
  #next = 1;

  constructor(kind: string) {
    this.#kind = kind;
  }

  add(entry: T): number {
    this.#entries.set(this.#next, entry);
    return this.#next++;
  }

  get(id: number): T {
    const entry = this.#entries.get(id);
    if (entry === undefined)
      throw new KvLensError(
        'disposed',
        { name: this.#kind },
        `the ${this.#kind} has been disposed of`,
      );
    return entry;
  }

  has(id: number): boolean {
    return this.#entries.has(id);
  }

  delete(id: number): void {
    this.#entries.delete(id);
  }
}

/** `watched`: whether the page asked for progress. */
function running({ signal, emit }: Call, watched: boolean): Running {
  return {
    signal,
    ...(watched && {
      onProgress: (progress: CallProgress) => emit({ kind: 'progress', progress }),
    }),
  };
}

interface SessionEntry {
  readonly target: WorkerSession;
  readonly model: WorkerModel;
  readonly ownCache: number | undefined;
}

export class Service {
  #core: Core | undefined;
  readonly #models = new Table<WorkerModel>('Model');
  readonly #caches = new Table<KvCache>('KvCache');
  readonly #sessions = new Table<SessionEntry>('Session');

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

  /**
   * `watched`: whether the page asked for progress; a report takes about as long as half a
   * megabyte's load.
   */
  async loadModel(
    { signal, emit }: Call,
    source: PortableSource,
    cache: boolean,
    watched: boolean,
  ): Promise<ModelDescription> {
    const onProgress = (progress: LoadProgress): unknown => emit({ kind: 'load', progress });
    const listener = watched ? onProgress : undefined;
    return this.#describeModel(
      await WorkerModel.load(this.#started, source, cache, signal, listener),
    );
  }

  randomModel(
    _call: Call,
    config: ConfigInput,
    seed: bigint,
    dtype: 'f64' | 'f32',
  ): ModelDescription {
    const start = performance.now();
    const model = this.#started.randomModel(config, {
      rng: { state: check.state64('seed', seed) },
      dtype,
    });
    return this.#describeModel(
      new WorkerModel(model, {
        name: 'random',
        format: 'random',
        architecture: 'llama',
        loadMilliseconds: performance.now() - start,
      }),
    );
  }

  #describeModel(model: WorkerModel): ModelDescription {
    const id = this.#models.add(model);
    return { id, config: model.model.config, info: model.info, tokenizer: model.tokenizerInfo };
  }

  disposeModel(_call: Call, id: number): void {
    if (!this.#models.has(id)) return;
    this.#models.get(id).model.dispose();
    this.#models.delete(id);
  }

  tokenize(_call: Call, id: number, text: string, addSpecial: boolean): Uint32Array {
    return this.#encode(this.#models.get(id), text, addSpecial);
  }

  #encode(model: WorkerModel, text: string, addSpecial: boolean): Uint32Array {
    const tokenizer = model.needTokenizer();
    check.string('text', text);
    return tokenizer.encode(text, addSpecial ? {} : { addBos: false, addEos: false });
  }

  detokenize(_call: Call, id: number, tokens: TokenIds): string {
    return this.#models.get(id).needTokenizer().decode(check.counts('tokens', tokens));
  }

  pieces(_call: Call, id: number, tokens: TokenIds): string[] {
    const tokenizer = this.#models.get(id).needTokenizer();
    return Array.from(check.counts('tokens', tokens), (token) => tokenizer.piece(token).text);
  }

  applyChatTemplate(
    _call: Call,
    id: number,
    messages: readonly ChatMessage[],
    addGenerationPrompt: boolean,
  ): string {
    return this.#models.get(id).applyChatTemplate(messages, addGenerationPrompt);
  }

  parameters(_call: Call, id: number): ParameterInfo[] {
    return this.#models.get(id).model.parameters();
  }

  readRows(_call: Call, id: number, name: string, rowBegin: number, nRows: number): Float64Array {
    return this.#models.get(id).model.readRows(name, rowBegin, nRows);
  }

  updateParameter(_call: Call, id: number, parameter: ParameterInput): void {
    this.#models.get(id).model.updateParameter(parameter);
  }

  modelHash(_call: Call, id: number): string {
    return this.#models.get(id).model.hash;
  }

  createCache(_call: Call, modelId: number, options: EngineCacheOptions): CacheDescription {
    const { model } = this.#models.get(modelId);
    const capacity = options.capacity ?? Math.min(model.config.maxSeqLen, DEFAULT_CAPACITY);
    const cache: KvCache = this.#started.createCache(model, { ...options, capacity });
    return this.#describeCache(this.#caches.add(cache));
  }

  #describeCache(id: number): CacheDescription {
    const { compute, kvDtype, capacity, nLayers, bytes } = this.#caches.get(id);
    return { id, compute, kvDtype, capacity, nLayers, bytes };
  }

  disposeCache(_call: Call, id: number): void {
    if (!this.#caches.has(id)) return;
    this.#caches.get(id).dispose();
    this.#caches.delete(id);
  }

  cacheLen(_call: Call, id: number): number {
    return this.#caches.get(id).len;
  }

  cacheTokens(_call: Call, id: number): Uint32Array {
    return this.#caches.get(id).tokens();
  }

  cacheRow(_call: Call, id: number, layer: number, kvHead: number, position: number): CacheRow {
    const rows = this.#caches.get(id).layer(layer);
    return { key: rows.keyRow(kvHead, position), value: rows.valueRow(kvHead, position) };
  }

  cacheLayer(_call: Call, id: number, index: number): { keys: Tensor; values: Tensor } {
    const cache = this.#caches.get(id);
    const layer = cache.layer(index);
    const shape = [cache.config.nKvHeads, layer.len, cache.config.headDim];
    return { keys: { data: layer.keys(), shape }, values: { data: layer.values(), shape } };
  }

  contentHashes(_call: Call, id: number, nRows: number | undefined): string[] {
    return this.#caches.get(id).contentHashes(nRows);
  }

  prefixHashes(_call: Call, id: number, lengths: readonly number[]): string[][] {
    return this.#caches.get(id).prefixHashes(lengths);
  }

  bind(
    _call: Call,
    modelId: number,
    cacheId: number,
    options: EngineSessionOptions,
  ): SessionDescription {
    return this.#bind(modelId, cacheId, options, undefined);
  }

  createSession(
    call: Call,
    modelId: number,
    options: EngineCacheOptions & EngineSessionOptions,
  ): SessionDescription {
    const cache = this.createCache(call, modelId, options);
    try {
      return this.#bind(modelId, cache.id, options, cache.id);
    } catch (error) {
      this.disposeCache(call, cache.id);
      throw error;
    }
  }

  #bind(
    modelId: number,
    cacheId: number,
    options: EngineSessionOptions,
    ownCache: number | undefined,
  ): SessionDescription {
    const model = this.#models.get(modelId);
    const session = this.#started.bind(model.model, this.#caches.get(cacheId), options);
    const target = new WorkerSession(this.#started, session);
    return {
      id: this.#sessions.add({ target, model, ownCache }),
      cache: this.#describeCache(cacheId),
    };
  }

  disposeSession(call: Call, id: number): void {
    if (!this.#sessions.has(id)) return;
    const { target, ownCache } = this.#sessions.get(id);
    target.session.dispose();
    this.#sessions.delete(id);
    if (ownCache !== undefined) this.disposeCache(call, ownCache);
  }

  /** One call of a session, alone. */
  #alone<T>(id: number, run: (target: WorkerSession) => T | Promise<T>): Promise<T> {
    const { target } = this.#sessions.get(id);
    return target.alone(() => run(target));
  }

  forward(
    call: Call,
    id: number,
    phase: 'prefill' | 'extend',
    tokens: TokenIds,
    options: StepOptions,
    watched: boolean,
  ): Promise<Step> {
    const ids = check.counts('tokens', tokens);
    return this.#alone(id, (target) => target.forward(phase, ids, options, running(call, watched)));
  }

  decode({ signal }: Call, id: number, token: number, options: StepOptions): Promise<Step> {
    return this.#alone(id, (target) => {
      if (signal.aborted) throw aborted(signal);
      return target.decode(token, options);
    });
  }

  replay(call: Call, id: number, options: ReplayOptions, watched: boolean): Promise<Replay> {
    return this.#alone(id, (target) => target.replay(options, running(call, watched)));
  }

  attentionMaps(
    call: Call,
    id: number,
    layers: readonly number[],
    watched: boolean,
  ): Promise<Tensor> {
    return this.#alone(id, async (target) => {
      const { evidence } = await target.replay(
        { capture: 'attention', layers },
        running(call, watched),
      );
      return evidence!.attention;
    });
  }

  verify(call: Call, id: number, watched: boolean): Promise<Verification> {
    return this.#alone(id, (target) => target.verify(running(call, watched)));
  }

  contrast(call: Call, id: number, watched: boolean): Promise<Contrast> {
    return this.#alone(id, (target) => target.contrast(running(call, watched)));
  }

  truncate(_call: Call, id: number, len: number): Promise<void> {
    return this.#alone(id, (target) => target.truncate(len));
  }

  reset(_call: Call, id: number): Promise<void> {
    return this.#alone(id, (target) => target.reset());
  }

  state(_call: Call, id: number): SessionState {
    return this.#sessions.get(id).target.state();
  }

  work(_call: Call, id: number): Work {
    return this.#sessions.get(id).target.work();
  }

  logits(_call: Call, id: number): FloatArray {
    return this.#sessions.get(id).target.session.logits();
  }

  evidence(_call: Call, id: number): Evidence | undefined {
    return this.#sessions.get(id).target.evidence;
  }

  topTokens(_call: Call, id: number, n: number): RankedToken[] {
    return this.#sessions.get(id).target.session.topTokens(n);
  }

  sample(
    _call: Call,
    id: number,
    sampling: SamplingOptions,
    rngState: bigint,
  ): { draw: Draw; rngState: bigint } {
    const rng = { state: rngState };
    const draw = this.#sessions.get(id).target.session.sample(sampling, rng);
    return { draw, rngState: rng.state };
  }

  generate(
    call: Call,
    id: number,
    request: EngineGenerateRequest,
    watched: boolean,
  ): Promise<GenerationResult> {
    const { model } = this.#sessions.get(id);
    const checked = tokenRequest(request, this.#promptTokens(model, request), model.tokenizer);
    return this.#alone(id, (target) =>
      generate(
        target,
        checked,
        model.tokenizer,
        running(call, watched),
        (token) => void call.emit({ kind: 'token', token }),
      ),
    );
  }

  #promptTokens(
    model: WorkerModel,
    { prompt, messages, tokens }: EngineGenerateRequest,
  ): Uint32Array {
    const given = [prompt, messages, tokens].filter((each) => each !== undefined).length;
    if (given !== 1)
      throw check.invalidArgument('request', `${given} prompts`, 'one of prompt, messages, tokens');
    if (tokens !== undefined) return check.counts('tokens', tokens);
    if (prompt !== undefined) return this.#encode(model, prompt, true);
    // A template writes BOS itself.
    return this.#encode(model, model.applyChatTemplate(messages!, true), false);
  }
}

/** Methods that the page can call. */
export type ServiceMethods = Pick<
  Service,
  {
    [Name in keyof Service]: Service[Name] extends (call: Call, ...args: never) => unknown
      ? Name
      : never;
  }[keyof Service]
>;
