/**
 * A session in the worker: one call at a time, long ones in steps, and a way back.
 *
 * The core undoes a call that fails. A generation is many calls, and may drop rows that the cache
 * held before; `snapshot` and `restore` undo that too. The rows that come back are computed again,
 * which by the first promise gives the same bytes; the counters leave out what was undone and what
 * undoing it took.
 */
import type { CallProgress, SessionState } from '../../engine-api.js';
import type { Core, ReplayOptions, Session } from '../../core-api.js';
import { verification } from '../../core/verification.js';
import { zeroWork, addWork, workArray, workFrom } from '../../core/work.js';
import { KvLensError } from '../../errors.js';
import type {
  ComputeType,
  Contrast,
  Evidence,
  Replay,
  Step,
  StepInfo,
  StepOptions,
  Verification,
  Work,
} from '../../types.js';
import { yieldToMessages } from './yield-to-messages.js';
import { copyOfEvidence, keptEvidence } from '../protocol/transfer.js';

/** What a call may be given beside its arguments. */
export interface Running {
  readonly signal: AbortSignal;
  /** Waited for, so that an abort by whoever is told is seen before the next step. */
  readonly onProgress?: (progress: CallProgress) => unknown;
}

/** A replay is told of at most about this many times: each takes a message there and back. */
const MAX_REPORTS = 100;

/** What undoing needs. */
export interface Snapshot {
  readonly tokens: Uint32Array;
  readonly hasLogits: boolean;
  readonly work: Work;
  readonly lastStep: StepInfo | undefined;
  readonly evidence: Evidence | undefined;
  readonly prefixLengths: readonly number[] | undefined;
}

export function aborted(signal: AbortSignal): KvLensError<'aborted'> {
  return new KvLensError(
    'aborted',
    {},
    'the call was aborted; the session is as it was before',
    signal.reason,
  );
}

export class WorkerSession {
  readonly session: Session;
  readonly #core: Core;
  #busy = false;
  #lastStep: StepInfo | undefined;
  #evidence: Evidence | undefined;
  /** Of the calls so far; undefined once they are not one prefill and decodes. */
  #prefixLengths: number[] | undefined = [];
  /** Counters of the core are right up to this, which undone calls leave behind. */
  #correction: Float64Array = workArray(zeroWork());

  constructor(core: Core, session: Session) {
    this.#core = core;
    this.session = session;
    if (session.kvLen !== 0) this.#prefixLengths = undefined;
  }

  /** Runs `call` unless another is running. Errors: call_in_progress. */
  async alone<T>(call: () => T | Promise<T>): Promise<T> {
    if (this.#busy)
      throw new KvLensError('call_in_progress', {}, 'another call of this session is running');
    this.#busy = true;
    try {
      return await call();
    } finally {
      this.#busy = false;
    }
  }

  async forward(
    phase: 'prefill' | 'extend',
    tokens: Uint32Array,
    options: StepOptions,
    running: Running,
  ): Promise<Step> {
    const { session } = this;
    const { signal, onProgress } = running;
    if (signal.aborted) throw aborted(signal);
    session.begin(phase, tokens, options);
    try {
      for (;;) {
        const left = session.advance();
        await onProgress?.({ done: tokens.length - left, total: tokens.length });
        await yieldToMessages();
        if (signal.aborted) throw aborted(signal);
        if (left === 0) return this.#done(session.finish());
      }
    } catch (error) {
      if (!session.disposed && session.callInProgress) session.abandon();
      throw error;
    }
  }

  decode(token: number, options: StepOptions): Step {
    return this.#done(this.session.decode(token, options));
  }

  async replay(options: ReplayOptions, running: Running): Promise<Replay> {
    const { signal } = running;
    if (signal.aborted) throw aborted(signal);
    const replay = this.session.beginReplay(options);
    try {
      const { nSteps } = replay;
      const total = options.tokens?.length ?? this.session.kvLen;
      const steps = Math.ceil(nSteps / MAX_REPORTS);
      for (;;) {
        const left = replay.advance();
        const done = nSteps - left;
        if (left === 0 || done % steps === 0)
          await running.onProgress?.({ done: (done / nSteps) * total, total });
        await yieldToMessages();
        if (signal.aborted) throw aborted(signal);
        if (left === 0) return replay.finish();
      }
    } finally {
      replay.dispose();
    }
  }

  async verify(running: Running): Promise<Verification> {
    const compare = verification(this.session);
    const replay = await this.replay({}, running);
    return { ...compare(replay), cached: this.#lastStep };
  }

  /** Each prefix replayed for real. */
  async contrast({ signal, onProgress }: Running): Promise<Contrast> {
    const { session } = this;
    const prefixLengths = this.#prefixLengths;
    if (prefixLengths === undefined || prefixLengths.length === 0) return session.contrast();
    const tokens = session.tokens();
    const total = prefixLengths.reduce((sum, length) => sum + length, 0);
    let before = 0;
    let work = zeroWork();
    for (const length of prefixLengths) {
      const running: Running = {
        signal,
        ...(onProgress && { onProgress: ({ done }) => onProgress({ done: before + done, total }) }),
      };
      work = addWork(
        work,
        (await this.replay({ tokens: tokens.subarray(0, length) }, running)).work,
      );
      before += length;
    }
    return this.#core.contrast(
      session.model.config,
      { prefixLengths, work: this.work() },
      { prefixLengths, work },
    );
  }

  truncate(len: number): void {
    this.session.truncate(len);
    this.#lastStep = undefined;
    this.#evidence = undefined;
    this.#prefixLengths = undefined;
  }

  reset(): void {
    this.session.reset();
    this.#correction.fill(0);
    this.#lastStep = undefined;
    this.#evidence = undefined;
    this.#prefixLengths = [];
  }

  /** Drops all rows and goes on counting. */
  clear(): void {
    const work = this.work();
    this.reset();
    this.#correct(work);
    this.#prefixLengths = undefined;
  }

  work(): Work {
    const counted = workArray(this.session.work());
    return workFrom(counted.map((value, i) => value + this.#correction[i]!));
  }

  get lastStep(): StepInfo | undefined {
    return this.#lastStep;
  }

  get evidence(): Evidence | undefined {
    return this.#evidence && copyOfEvidence(this.#evidence);
  }

  state(): SessionState {
    const { session } = this;
    return {
      kvLen: session.kvLen,
      capacity: session.capacity,
      tokens: session.tokens(),
      work: this.work(),
      hasLogits: session.hasLogits,
      lastStep: this.#lastStep,
      callInProgress: this.#busy,
    };
  }

  snapshot(): Snapshot {
    return {
      tokens: this.session.tokens(),
      hasLogits: this.session.hasLogits,
      work: this.work(),
      lastStep: this.#lastStep,
      evidence: this.evidence,
      prefixLengths: this.#prefixLengths && [...this.#prefixLengths],
    };
  }

  /** `untouched`: how many of the rows of then have been in the cache ever since. */
  restore(snapshot: Snapshot, untouched: number): void {
    const { session } = this;
    const { tokens } = snapshot;
    if (session.callInProgress) session.abandon();
    // The last row gives the logits, so it is computed again when they are wanted.
    const keep = snapshot.hasLogits ? Math.min(untouched, tokens.length - 1) : untouched;
    if (sameIds(session.tokens(), tokens) && session.hasLogits === snapshot.hasLogits) {
      // Nothing has been lost.
    } else if (tokens.length === 0) {
      session.reset();
    } else if (keep <= 0) {
      session.reset();
      session.prefill(tokens);
    } else {
      session.truncate(keep);
      if (keep < tokens.length) session.extend(tokens.subarray(keep));
    }
    if (!snapshot.hasLogits && session.hasLogits) session.truncate(tokens.length);
    this.#correction.fill(0);
    this.#correct(snapshot.work);
    this.#lastStep = snapshot.lastStep;
    this.#evidence = snapshot.evidence;
    this.#prefixLengths = snapshot.prefixLengths && [...snapshot.prefixLengths];
  }

  /** From here on the counters say `work`, and more with every further call. */
  #correct(work: Work): void {
    const counted = workArray(this.session.work());
    this.#correction = workArray(work).map((value, i) => value - counted[i]!);
  }

  #done<S extends Step<ComputeType>>(step: S): S {
    const { logits, evidence, ...info } = step;
    this.#lastStep = info;
    if (evidence) this.#evidence = keptEvidence(evidence, this.#evidence);
    if (info.phase === 'extend') this.#prefixLengths = undefined;
    else this.#prefixLengths?.push(info.kvLen);
    return step;
  }
}

function sameIds(a: Uint32Array, b: Uint32Array): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}
