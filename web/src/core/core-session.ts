/**
 * `Session` of the public interface, implemented by the module's session. It checks arguments,
 * copies results out of the module, and remembers the last step.
 */
import type {
  GenerateRequest,
  Generation,
  KvCache,
  Model,
  ReplayOptions,
  Savepoint,
  Session,
  SessionOptions,
} from '../core-api.js';
import { KvLensError } from '../errors.js';
import type { Outcome, Session as RawSession, StepValue } from '../kvlens-simd.js';
import type {
  ComputeType,
  Contrast,
  Draw,
  FloatArray,
  RankedToken,
  Replay,
  Rng,
  SamplingOptions,
  Schedule,
  Step,
  StepInfo,
  StepOptions,
  StepPhase,
  TokenIds,
  Verification,
  Work,
} from '../types.js';
import * as check from './arguments.js';
import type { CoreKvCache } from './core-kv-cache.js';
import { contrastOf } from './contrast.js';
import { CoreSavepoint, type History } from './core-savepoint.js';
import { EvidenceCapture } from './evidence-capture.js';
import { OwnedHandle } from './owned-handle.js';
import { copyOf, unwrap, type Instance } from './instance.js';
import type { CoreModel } from './core-model.js';
import { CoreStepwiseReplay } from './core-stepwise-replay.js';
import { verification } from './verification.js';
import { addWork, workFrom, zeroWork } from './work.js';

/** A stepwise call between `begin` and its end. */
interface OpenCall<C extends ComputeType> {
  readonly phase: StepPhase;
  readonly lengthsBefore: readonly number[];
  readonly copiesLogits: boolean;
  readonly capture: EvidenceCapture<C> | undefined;
  milliseconds: number;
}

/** What the core says of a call, with logits that stay valid. */
type CopiedStep<C extends ComputeType> = Omit<StepValue, 'logits'> & {
  readonly logits: FloatArray<C>;
};

export class CoreSession<C extends ComputeType>
  extends OwnedHandle<RawSession>
  implements Session<C>
{
  readonly capacity: number;
  readonly chunkRows: number;
  readonly #model: CoreModel;
  readonly #cache: CoreKvCache<C>;
  readonly #ownsCache: boolean;
  #open: OpenCall<C> | undefined;
  /** They refer to this session in the module, so they are deleted before it. */
  readonly #dependents = new Set<CoreStepwiseReplay<C> | CoreSavepoint<C>>();
  #history: History = { lastStep: undefined, prefillRows: 0 };

  constructor(
    instance: Instance,
    model: CoreModel,
    cache: CoreKvCache<C>,
    options: SessionOptions,
    ownsCache: boolean,
  ) {
    const chunkRows = check.count('chunkRows', options.chunkRows ?? 64);
    const raw = instance.call((module) =>
      unwrap(module.bind(model.raw, cache.raw, chunkRows, instance.pool)),
    );
    super(instance, raw, 'Session');
    this.#model = model;
    this.#cache = cache;
    this.#ownsCache = ownsCache;
    this.capacity = cache.capacity;
    this.chunkRows = chunkRows;
    if (this.kvLen !== 0) this.#history = { lastStep: undefined, prefillRows: undefined };
    ++cache.bound;
  }

  get model(): Model {
    return this.#model;
  }

  get cache(): KvCache<C> {
    return this.#cache;
  }

  get compute(): C {
    return this.#cache.compute;
  }

  get kvLen(): number {
    return this.#call((raw) => raw.kvLen());
  }

  get callInProgress(): boolean {
    return this.#call((raw) => raw.callInProgress());
  }

  get hasLogits(): boolean {
    return this.#call((raw) => raw.hasLogits());
  }

  get lastStep(): StepInfo | undefined {
    void this.raw;
    return this.#history.lastStep;
  }

  prefill(tokens: TokenIds, options?: StepOptions): Step<C> {
    const ids = check.counts('tokens', tokens);
    return this.#step('prefill', ids.length, options, (recorder) =>
      this.raw.prefill(ids, recorder),
    );
  }

  decode(token: number, options?: StepOptions): Step<C> {
    check.count('token', token);
    return this.#step('decode', 1, options, (recorder) => this.raw.decode(token, recorder));
  }

  extend(tokens: TokenIds, options?: StepOptions): Step<C> {
    const ids = check.counts('tokens', tokens);
    return this.#step('extend', ids.length, options, (recorder) => this.raw.extend(ids, recorder));
  }

  begin(phase: 'prefill' | 'extend', tokens: TokenIds, options?: StepOptions): void {
    const ids = check.counts('tokens', tokens);
    if (phase !== 'prefill' && phase !== 'extend')
      throw check.invalidArgument('phase', phase, 'prefill, extend');
    check.capture(options, this.#model.config.nLayers);
    check.flag('logits', options?.logits ?? true);
    this.#call((raw) => unwrap(raw.begin(phase === 'prefill', ids)));
    this.#open = this.#openCall(phase, ids.length, options);
  }

  advance(): number {
    return this.#inOpenCall((raw, open) => unwrap(raw.advance(open.capture?.recorder ?? null)));
  }

  finish(): Step<C> {
    const step = this.#inOpenCall((raw, open) =>
      this.#copyStep(unwrap(raw.finish(open.capture?.recorder ?? null)), open),
    );
    const open = this.#open!;
    this.#open = undefined;
    return this.#record(open, step);
  }

  abandon(): void {
    this.#call((raw) => raw.abandon());
    this.#endOpenCall();
  }

  replay(options?: ReplayOptions): Replay<C> {
    return this.beginReplay(options).finish();
  }

  beginReplay(options: ReplayOptions = {}): CoreStepwiseReplay<C> {
    const ids =
      options.tokens === undefined ? this.tokens() : check.counts('tokens', options.tokens);
    const allLogits = check.flag('allLogits', options.allLogits ?? false);
    const { raw } = this;
    const { vocabSize } = this.#model.config;
    const replay = CoreStepwiseReplay.begin(
      this.instance,
      {
        capture: EvidenceCapture.start(
          this.instance,
          this.#model,
          this.compute,
          options,
          0,
          ids.length,
        ),
        shape: allLogits ? [ids.length, vocabSize] : [vocabSize],
        onEnd: (ended: CoreStepwiseReplay<C>) => void this.#dependents.delete(ended),
      },
      () => raw.beginReplay(ids, allLogits),
    );
    this.#dependents.add(replay);
    return replay;
  }

  verify(): Verification {
    const compare = verification(this);
    return compare(this.replay());
  }

  truncate(len: number): void {
    check.count('len', len);
    this.#call((raw) => unwrap(raw.truncate(len)));
    this.#history = { lastStep: undefined, prefillRows: undefined };
  }

  clear(): void {
    this.#call((raw) => raw.clear());
    this.#endOpenCall();
    this.#history = { lastStep: undefined, prefillRows: undefined };
  }

  reset(): void {
    this.#call((raw) => raw.reset());
    this.#endOpenCall();
    this.#history = { lastStep: undefined, prefillRows: 0 };
  }

  savepoint(): CoreSavepoint<C> {
    const raw = this.#call((session) => unwrap(session.savepoint()));
    const savepoint = new CoreSavepoint(
      this.instance,
      raw,
      this,
      this.#history,
      (ended) => void this.#dependents.delete(ended),
    );
    this.#dependents.add(savepoint);
    return savepoint;
  }

  rollback(savepoint: Savepoint<C>): void {
    void this.raw;
    if (!(savepoint instanceof CoreSavepoint) || savepoint.session !== this)
      throw check.invalidArgument('savepoint', savepoint, 'a Savepoint made by this session');
    this.#call((raw) => unwrap(raw.rollback(savepoint.raw)));
    this.#endOpenCall();
    this.#history = savepoint.history;
  }

  work(): Work {
    return workFrom(this.#call((raw) => raw.work()));
  }

  tokens(): Uint32Array<ArrayBuffer> {
    void this.raw;
    return this.#cache.tokens();
  }

  logits(): FloatArray<C> {
    this.#checkLogits();
    return copyOf(this.#call((raw) => raw.logitsView())) as FloatArray<C>;
  }

  logit(token: number): number {
    check.count('token', token);
    this.#checkLogits();
    const view = this.#call((raw) => raw.logitsView());
    const value = view[token];
    if (value !== undefined) return value;
    throw new KvLensError(
      'token_out_of_range',
      { position: 0, id: token, vocabSize: view.length },
      `token ${token} is outside the vocabulary of ${view.length}`,
    );
  }

  schedule(): Schedule {
    const { prefillRows } = this.#history;
    if (prefillRows === undefined || prefillRows === 0) {
      throw new KvLensError(
        'no_schedule',
        {},
        'a contrast needs a prefill and decodes, and nothing else, since the session was bound or reset',
      );
    }
    // Each decode added one row.
    const nCalls = this.kvLen - prefillRows + 1;
    return {
      prefixLengths: Array.from({ length: nCalls }, (_, i) => prefillRows + i),
      work: this.work(),
    };
  }

  contrast(): Contrast {
    const cached = this.schedule();
    const tokens = this.tokens();
    const work = cached.prefixLengths.reduce(
      (sum, length) => addWork(sum, this.replay({ tokens: tokens.subarray(0, length) }).work),
      zeroWork(),
    );
    return contrastOf(this.instance, this.#model.config, cached, {
      prefixLengths: cached.prefixLengths,
      work,
    });
  }

  topTokens(n: number): RankedToken[] {
    check.count('n', n);
    this.#checkLogits();
    const flat = this.#call((raw) => unwrap(raw.topTokens(n)));
    return Array.from({ length: flat.length / 3 }, (_, i) => {
      const [token, logit, logprob] = flat.slice(3 * i, 3 * i + 3) as [number, number, number];
      return { token, logit, logprob, probability: Math.exp(logprob) };
    });
  }

  sample(sampling: SamplingOptions, rng?: Rng, recent?: TokenIds): Draw {
    const config = check.sampling(sampling);
    const state = check.rngState(rng, config.greedy);
    this.#checkLogits();
    const ids =
      recent !== undefined
        ? check.counts('recent', recent)
        : config.repetitionPenalty === 1
          ? new Uint32Array()
          : this.tokens();
    const { draw, rngState } = this.#call((raw) => unwrap(raw.sample(config, state, ids)));
    if (rng !== undefined) rng.state = rngState;
    return draw;
  }

  generate(request: GenerateRequest): Generation {
    const generation = this.#generate(request);
    const [first] = generation.steps;
    if (first) this.#history = { lastStep: undefined, prefillRows: first.prefixLength };
    return generation;
  }

  override dispose(): void {
    for (const dependent of this.#dependents) dependent.dispose();
    super.dispose();
  }

  protected override releaseOwned(): void {
    --this.#cache.bound;
    this.#open?.capture?.end();
    if (this.#ownsCache) this.#cache.dispose();
  }

  #call<T>(run: (raw: RawSession) => T): T {
    const { raw } = this;
    return this.instance.call(() => run(raw));
  }

  #checkLogits(): void {
    if (this.hasLogits) return;
    throw new KvLensError(
      'no_logits',
      {},
      'the session has no logits; prefill, decode or extend gives them',
    );
  }

  #layerLengths(): number[] {
    return Array.from({ length: this.#cache.nLayers }, (_, layer) => this.#cache.layer(layer).len);
  }

  #openCall(phase: StepPhase, nRows: number, options: StepOptions | undefined): OpenCall<C> {
    return {
      phase,
      lengthsBefore: this.#layerLengths(),
      copiesLogits: check.flag('logits', options?.logits ?? true),
      capture: EvidenceCapture.start(
        this.instance,
        this.#model,
        this.compute,
        options,
        this.kvLen,
        nRows,
      ),
      milliseconds: 0,
    };
  }

  #step(
    phase: StepPhase,
    nRows: number,
    options: StepOptions | undefined,
    run: (recorder: EvidenceCapture<C>['recorder'] | null) => Outcome<StepValue>,
  ): Step<C> {
    const open = this.#openCall(phase, nRows, options);
    try {
      const start = performance.now();
      const value = this.instance.call(() => unwrap(run(open.capture?.recorder ?? null)));
      open.milliseconds = performance.now() - start;
      return this.#record(open, this.#copyStep(value, open));
    } catch (error) {
      open.capture?.end();
      throw error;
    }
  }

  /** Runs a part of the open call; an error ends it, as it does in the core. */
  #inOpenCall<T>(run: (raw: RawSession, open: OpenCall<C>) => T): T {
    const { raw } = this;
    const open = this.#open;
    if (open === undefined) {
      throw new KvLensError('no_call_in_progress', {}, 'no call has begun');
    }
    const start = performance.now();
    try {
      return this.instance.call(() => run(raw, open));
    } catch (error) {
      this.#endOpenCall();
      throw error;
    } finally {
      open.milliseconds += performance.now() - start;
    }
  }

  #endOpenCall(): void {
    this.#open?.capture?.end();
    this.#open = undefined;
  }

  /** Copies the logits, which are a view of the module's memory. */
  #copyStep(value: StepValue, { copiesLogits }: OpenCall<C>): CopiedStep<C> {
    const wanted = copiesLogits ? value.logits : value.logits.subarray(0, 0);
    return { ...value, logits: copyOf(wanted) as FloatArray<C> };
  }

  /** Remembers a call that has succeeded, and makes the result for its caller. */
  #record(open: OpenCall<C>, value: CopiedStep<C>): Step<C> {
    try {
      const info: StepInfo = {
        phase: open.phase,
        position: value.position,
        kvLenBefore: value.kvLenBefore,
        kvLen: value.kvLen,
        rowsAppended: this.#layerLengths().map(
          (length, layer) => length - open.lengthsBefore[layer]!,
        ),
        rowAttentionScoreValues: value.rowAttentionScoreValues,
        work: workFrom(value.work),
        milliseconds: open.milliseconds,
      };
      const evidence = open.capture?.take();
      this.#history = { lastStep: info, prefillRows: this.#prefillRowsAfter(info) };
      return { ...info, logits: value.logits, ...(evidence && { evidence }) };
    } finally {
      open.capture?.end();
    }
  }

  #prefillRowsAfter({ phase, kvLen }: StepInfo): number | undefined {
    const { prefillRows } = this.#history;
    if (phase === 'prefill') return prefillRows === 0 ? kvLen : undefined;
    return phase === 'decode' ? prefillRows : undefined;
  }

  #generate(request: GenerateRequest): Generation {
    if (typeof request !== 'object' || request === null)
      throw check.invalidArgument('request', request, 'objects');
    const prompt = check.counts('prompt', request.prompt);
    const maxNewTokens = check.count('maxNewTokens', request.maxNewTokens);
    const eosToken =
      request.eosToken === undefined ? undefined : check.count('eosToken', request.eosToken);
    const sampling = check.sampling(request.sampling ?? {});
    const state = check.rngState(request.rng, sampling.greedy);
    const { rngState, work, ...generation } = this.#call((raw) =>
      unwrap(raw.generate(prompt, maxNewTokens, eosToken, sampling, state)),
    );
    if (request.rng !== undefined) request.rng.state = rngState;
    return { ...generation, work: workFrom(work) };
  }
}
