/**
 * A session in the worker: its calls run one after another, and long ones pause between steps so
 * that an abort, or a call of another session, can arrive.
 *
 * The state is the core session's. Undoing a call of several steps is the core's savepoint.
 */
import type { Core, ReplayOptions, Session } from '../../core-api.js';
import type {
  CallOptions,
  EngineGenerateRequest,
  EngineReplayOptions,
  EngineSession,
  EngineStep,
  GenerationResult,
  SessionState,
} from '../../engine-api.js';
import * as check from '../../core/arguments.js';
import { verification } from '../../core/verification.js';
import { addWork, zeroWork } from '../../core/work.js';
import { KvLensError, isKvLensError } from '../../errors.js';
import type {
  Contrast,
  Draw,
  Replay,
  SamplingOptions,
  Step,
  Tensor,
  TokenIds,
  Verification,
} from '../../types.js';
import { CORE_SESSION_METHODS, SESSION_METHODS } from '../../engine-session-api.js';
import type { Served } from '../protocol/methods.js';
import { CallQueue } from './call-queue.js';
import { aborted, type Call } from './call.js';
import { callNamed, includes } from './call-named.js';
import { generate, tokenRequest } from './generation.js';
import { readAfterStep, wantsReads } from './step-reads.js';
import type { WorkerModel } from './worker-model.js';
import { yieldToMessages } from './yield-to-messages.js';

/** A replay reports at most about this many times, since each report waits for the page. */
const MAX_REPORTS = 100;

type SessionMethod = (typeof SESSION_METHODS)[number];

export class WorkerSession implements Served<EngineSession, SessionMethod | 'state'> {
  readonly session: Session;
  readonly #core: Core;
  readonly #model: WorkerModel;
  readonly #onDispose: () => void;
  readonly #queue = new CallQueue();

  constructor(core: Core, session: Session, model: WorkerModel, onDispose: () => void = () => {}) {
    this.#core = core;
    this.session = session;
    this.#model = model;
    this.#onDispose = onDispose;
  }

  /** Runs a call of the page in its turn; `state` answers at once. */
  serve(method: string, call: Call, args: readonly unknown[]): unknown {
    if (method === 'state') return this.state(call);
    if (method === 'generate') return this.generate(call, args[0] as EngineGenerateRequest);
    return this.#queue.run(call.signal, () =>
      includes(CORE_SESSION_METHODS, method)
        ? callNamed(this.session, method, args)
        : callNamed(this, method, [call, ...args]),
    );
  }

  prefill(call: Call, tokens: TokenIds, options: CallOptions = {}): Promise<EngineStep> {
    return this.#steps(call, 'prefill', tokens, options);
  }

  extend(call: Call, tokens: TokenIds, options: CallOptions = {}): Promise<EngineStep> {
    return this.#steps(call, 'extend', tokens, options);
  }

  decode(_call: Call, token: number, options: CallOptions = {}): EngineStep | Promise<EngineStep> {
    return this.#withReads([token], options, () => this.session.decode(token, options));
  }

  #steps(
    call: Call,
    phase: 'prefill' | 'extend',
    tokens: TokenIds,
    options: CallOptions,
  ): Promise<EngineStep> {
    const ids = check.counts('tokens', tokens);
    return this.#withReads(ids, options, () => this.forward(call, phase, ids, options));
  }

  /** Runs a forward call in steps. */
  async forward(
    { signal, onProgress }: Call,
    phase: 'prefill' | 'extend',
    tokens: Uint32Array,
    options: CallOptions,
  ): Promise<Step> {
    const { session } = this;
    session.begin(phase, tokens, options);
    try {
      for (;;) {
        const left = session.advance();
        await onProgress?.({ done: tokens.length - left, total: tokens.length });
        await yieldToMessages();
        if (signal.aborted) throw aborted(signal);
        if (left === 0) return session.finish();
      }
    } catch (error) {
      if (!session.disposed && session.callInProgress) session.abandon();
      throw error;
    }
  }

  /** Adds to the step of `run` what `options` wants to be read after it. */
  #withReads<S extends Step | Promise<Step>>(
    tokens: ArrayLike<number>,
    options: CallOptions,
    run: () => S,
  ): S | Promise<EngineStep> {
    if (!wantsReads(options)) return run();
    const tokenizer = options.pieces ? this.#model.needTokenizer() : undefined;
    return this.undoneOnError(async () => {
      const step = await run();
      return { ...step, ...readAfterStep(this.session, tokens, options, tokenizer) };
    });
  }

  /** Runs `run`; if it fails, the session is again as it was before. */
  async undoneOnError<T>(run: () => Promise<T>): Promise<T> {
    const { session } = this;
    const savepoint = session.savepoint();
    try {
      return await run();
    } catch (error) {
      const gone = session.disposed || (isKvLensError(error) && error.code === 'module_aborted');
      if (!gone) session.rollback(savepoint);
      throw error;
    } finally {
      savepoint.dispose();
    }
  }

  async replay(call: Call, options: EngineReplayOptions = {}): Promise<Replay> {
    return this.#replay(call, options);
  }

  async #replay({ signal, onProgress }: Call, options: ReplayOptions): Promise<Replay> {
    const replay = this.session.beginReplay(options);
    try {
      const { nSteps } = replay;
      const total = options.tokens?.length ?? this.session.kvLen;
      const stepsPerReport = Math.ceil(nSteps / MAX_REPORTS);
      for (;;) {
        const left = replay.advance();
        const done = nSteps - left;
        if (left === 0 || done % stepsPerReport === 0)
          await onProgress?.({ done: (done / nSteps) * total, total });
        await yieldToMessages();
        if (signal.aborted) throw aborted(signal);
        if (left === 0) return replay.finish();
      }
    } finally {
      replay.dispose();
    }
  }

  async attentionMaps(call: Call, layers: readonly number[]): Promise<Tensor> {
    const { evidence } = await this.#replay(call, { capture: 'attention', layers });
    return evidence!.attention;
  }

  async verify(call: Call): Promise<Verification> {
    const compare = verification(this.session);
    return compare(await this.#replay(call, {}));
  }

  /** Replays each prefix for real. */
  async contrast({ signal, onProgress }: Call): Promise<Contrast> {
    const { session } = this;
    const cached = session.schedule();
    const { prefixLengths } = cached;
    const tokens = session.tokens();
    const total = prefixLengths.reduce((sum, length) => sum + length, 0);
    let before = 0;
    let work = zeroWork();
    for (const length of prefixLengths) {
      const part: Call = {
        signal,
        ...(onProgress && { onProgress: ({ done }) => onProgress({ done: before + done, total }) }),
      };
      const replay = await this.#replay(part, { tokens: tokens.subarray(0, length) });
      work = addWork(work, replay.work);
      before += length;
    }
    return this.#core.contrast(session.model.config, cached, { prefixLengths, work });
  }

  sample(
    _call: Call,
    sampling: SamplingOptions,
    rngState = 0n,
  ): { readonly draw: Draw; readonly rngState: bigint } {
    const rng = { state: rngState };
    const draw = this.session.sample(sampling, rng);
    return { draw, rngState: rng.state };
  }

  async generate(call: Call, request: EngineGenerateRequest): Promise<GenerationResult> {
    const checked = tokenRequest(request, this.#model);
    return generate(this, checked, this.#model.tokenizer, call, (run) =>
      this.#queue.run(call.signal, run),
    );
  }

  state(_call: Call): SessionState {
    const { session } = this;
    return {
      kvLen: session.kvLen,
      capacity: session.capacity,
      tokens: session.tokens(),
      work: session.work(),
      hasLogits: session.hasLogits,
      lastStep: session.lastStep,
      callInProgress: this.#queue.running,
    };
  }

  /** The calls that wait are rejected; the one that runs is when it goes on. */
  dispose(): void {
    this.session.dispose();
    const message = 'the Session has been disposed';
    this.#queue.close(new KvLensError('disposed', { name: 'Session' }, message));
    this.#onDispose();
  }
}
