/** A savepoint of the module, and what JavaScript knew of the session when it was made. */
import type { Savepoint } from '../core-api.js';
import type { Savepoint as RawSavepoint } from '../kvlens-simd.js';
import type { ComputeType, StepInfo } from '../types.js';
import { OwnedHandle } from './owned-handle.js';
import type { Instance } from './instance.js';
import type { CoreSession } from './core-session.js';

/** What a session remembers of its calls. It is replaced, never changed. */
export interface History {
  readonly lastStep: StepInfo | undefined;
  /**
   * Rows of the prefill that began the session's schedule; 0 before any call, and undefined once
   * the calls are not one prefill and decodes.
   */
  readonly prefillRows: number | undefined;
}

export class CoreSavepoint<C extends ComputeType>
  extends OwnedHandle<RawSavepoint>
  implements Savepoint<C>
{
  readonly session: CoreSession<C>;
  readonly history: History;
  readonly #onEnd: () => void;

  constructor(
    instance: Instance,
    raw: RawSavepoint,
    session: CoreSession<C>,
    history: History,
    onEnd: (savepoint: CoreSavepoint<C>) => void,
  ) {
    super(instance, raw, 'Savepoint');
    this.session = session;
    this.history = history;
    this.#onEnd = () => onEnd(this);
  }

  protected override releaseOwned(): void {
    this.#onEnd();
  }
}
