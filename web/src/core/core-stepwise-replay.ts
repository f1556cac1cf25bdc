/** `StepwiseReplay` of the public interface, implemented by the module's replay. */
import type { StepwiseReplay } from '../core-api.js';
import type { Outcome, Replay as RawReplay } from '../kvlens-simd.js';
import type { ComputeType, FloatArray, Replay } from '../types.js';
import type { EvidenceCapture } from './evidence-capture.js';
import { OwnedHandle } from './owned-handle.js';
import { copyOf, unwrap, type Instance } from './instance.js';
import { workFrom } from './work.js';

/** What is known of a replay when it begins. */
export interface ReplayStart<C extends ComputeType> {
  readonly capture: EvidenceCapture<C> | undefined;
  /** Shape of the logits that it will return. */
  readonly shape: readonly number[];
  /** Called once, when it has ended. */
  readonly onEnd: (replay: CoreStepwiseReplay<C>) => void;
}

export class CoreStepwiseReplay<C extends ComputeType>
  extends OwnedHandle<RawReplay>
  implements StepwiseReplay<C>
{
  readonly nSteps: number;
  readonly #start: ReplayStart<C>;
  #milliseconds: number;

  private constructor(
    instance: Instance,
    raw: RawReplay,
    start: ReplayStart<C>,
    milliseconds: number,
  ) {
    super(instance, raw, 'StepwiseReplay');
    this.#start = start;
    this.#milliseconds = milliseconds;
    this.nSteps = instance.call(() => raw.nSteps());
  }

  static begin<C extends ComputeType>(
    instance: Instance,
    start: ReplayStart<C>,
    begin: () => Outcome<RawReplay>,
  ): CoreStepwiseReplay<C> {
    try {
      const time = performance.now();
      const raw = instance.call(() => unwrap(begin()));
      return new CoreStepwiseReplay(instance, raw, start, performance.now() - time);
    } catch (error) {
      start.capture?.end();
      throw error;
    }
  }

  advance(): number {
    return this.#run((raw) => unwrap(raw.advance(this.#recorder)));
  }

  finish(): Replay<C> {
    const { capture, shape } = this.#start;
    const { logits, work } = this.#run((raw) => unwrap(raw.finish(this.#recorder)));
    try {
      const data = copyOf(this.instance.call(() => logits.view())) as FloatArray<C>;
      return {
        logits: { data, shape: [...shape] },
        work: workFrom(work),
        milliseconds: this.#milliseconds,
        ...(capture && { evidence: capture.take() }),
      };
    } finally {
      this.instance.call(() => logits.delete());
      this.dispose();
    }
  }

  protected override releaseOwned(): void {
    this.#start.capture?.end();
    this.#start.onEnd(this);
  }

  get #recorder(): EvidenceCapture<C>['recorder'] | null {
    return this.#start.capture?.recorder ?? null;
  }

  /** Runs a part of the replay; an error ends it, as it does in the core. */
  #run<T>(run: (raw: RawReplay) => T): T {
    const { raw } = this;
    const time = performance.now();
    try {
      return this.instance.call(() => run(raw));
    } catch (error) {
      this.dispose();
      throw error;
    } finally {
      this.#milliseconds += performance.now() - time;
    }
  }
}
