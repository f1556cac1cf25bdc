// Operations that the engine must refuse, each really tried. Every attempt gets a session of its
// own, so that the state before and after can be compared byte for byte; the page's session is
// watched too.
import { signal } from '@preact/signals';
import {
  isKvLensError,
  type AnyKvLensError,
  type EngineModel,
  type EngineSession,
  type ErrorCode,
} from 'kvlens';
import { toyConfig, toySeed } from './models.js';
import { engine, live } from './store.js';
import { sameHashes } from './trace.js';
import { run } from './jobs.js';

export const attemptIds = [
  'decodeFirst',
  'prefillTwice',
  'outOfRange',
  'pastCapacity',
  'editBorrowed',
  'bindAfterEdit',
  'abortPrefill',
  'plantNaN',
] as const;
export type AttemptId = (typeof attemptIds)[number];

/** The error code that each attempt must end with. */
export const expectedCodes: Readonly<Record<AttemptId, ErrorCode>> = {
  decodeFirst: 'not_prefilled',
  prefillTwice: 'not_empty',
  outOfRange: 'token_out_of_range',
  pastCapacity: 'cache_full',
  editBorrowed: 'parameter_borrowed',
  bindAfterEdit: 'parameter_revision_mismatch',
  abortPrefill: 'aborted',
  plantNaN: 'non_finite_parameter',
};

/** All that an operation could change: rows, their bytes, counters, and the weights. */
export interface Snapshot {
  readonly kvLen: number;
  /** One per layer, then the model's. */
  readonly hashes: readonly string[];
  /** Multiply-adds and all other counters, as text. */
  readonly work: string;
}

export interface Attempt {
  /** None when the operation was not refused, which would be a defect. */
  readonly error: AnyKvLensError | undefined;
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly unchanged: boolean;
  /** Rows and hashes of the page's own session, before and after. */
  readonly own: { readonly nRows: number; readonly unchanged: boolean } | undefined;
}

export const attempts = signal<Readonly<Partial<Record<AttemptId, Attempt>>>>({});

async function snapshot(session: EngineSession): Promise<Snapshot> {
  const { kvLen, work } = await session.state();
  const hashes = [...(await session.cache.contentHashes()), await session.model.hash()];
  return { kvLen, hashes, work: JSON.stringify(work) };
}

async function refusal(operation: () => Promise<unknown>): Promise<AnyKvLensError | undefined> {
  try {
    await operation();
    return undefined;
  } catch (error) {
    if (isKvLensError(error)) return error;
    throw error;
  }
}

interface Outcome {
  readonly error: AnyKvLensError | undefined;
  readonly before: Snapshot;
  readonly after: Snapshot;
}

/** Brings a session to where the attempt begins, then makes it. */
async function attemptOn(
  session: EngineSession,
  prepare: () => Promise<unknown>,
  operation: () => Promise<unknown>,
): Promise<Outcome> {
  await prepare();
  const before = await snapshot(session);
  const error = await refusal(operation);
  return { error, before, after: await snapshot(session) };
}

const nothing = (): Promise<void> => Promise.resolve();

/** Attempts on a session. */
async function onSession(id: AttemptId, model: EngineModel, capacity: number): Promise<Outcome> {
  const session = await model.createSession({ capacity, chunkRows: 1 });
  try {
    const some = (): Promise<unknown> => session.prefill([0, 1]);
    const full = (): Promise<unknown> => session.prefill(Array.from({ length: capacity }, () => 0));
    switch (id) {
      case 'prefillTwice':
        return await attemptOn(session, some, () => session.prefill([0, 1]));
      case 'outOfRange':
        return await attemptOn(session, some, () => session.decode(model.config.vocabSize));
      case 'pastCapacity':
        return await attemptOn(session, full, () => session.decode(0));
      case 'abortPrefill': {
        const abort = new AbortController();
        // After the first of its chunks, so that rows have been computed by then.
        const onProgress = (): void => abort.abort();
        return await attemptOn(session, nothing, () =>
          session.prefill(
            Array.from({ length: capacity }, () => 0),
            { signal: abort.signal, onProgress },
          ),
        );
      }
      default:
        return await attemptOn(session, nothing, () => session.decode(0));
    }
  } finally {
    await session.dispose();
  }
}

/**
 * Attempts on weights, with a toy decoder: the weights of the model that is loaded are left alone.
 */
async function onWeights(id: AttemptId): Promise<Outcome> {
  const host = engine.value;
  if (!host) throw new Error('no engine');
  const model = await host.randomModel(toyConfig, { seed: toySeed, dtype: 'f64' });
  try {
    const parameters = await model.parameters();
    const target = parameters[parameters.length - 1];
    if (!target) throw new Error('a model without parameters');
    const values = new Float64Array(target.shape.reduce((a, b) => a * b, 1)).fill(0.5);
    const edit = { name: target.name, dtype: 'f64', data: values } as const;
    const cache = await model.createCache({ compute: 'f64' });
    let session = await model.bind(cache);
    try {
      await session.prefill([0, 1]);
      if (id === 'editBorrowed')
        return await attemptOn(session, nothing, () => model.updateParameter(edit));
      const { work } = await snapshot(session);
      const state = async (): Promise<Snapshot> => ({
        kvLen: await cache.len(),
        hashes: [...(await cache.contentHashes()), await model.hash()],
        work,
      });
      await session.dispose();
      if (id === 'bindAfterEdit') await model.updateParameter(edit);
      else values[0] = NaN;
      const before = await state();
      const error = await refusal(async () => {
        if (id === 'plantNaN') await model.updateParameter(edit);
        else session = await model.bind(cache);
      });
      return { error, before, after: await state() };
    } finally {
      await session.dispose();
      await cache.dispose();
    }
  } finally {
    await model.dispose();
  }
}

/** A prefill that can be aborted has to last until the signal has crossed to the worker. */
const longPrompt = 256;

async function onLongSession(id: AttemptId, model: EngineModel): Promise<Outcome> {
  if (model.config.maxSeqLen >= longPrompt) return onSession(id, model, longPrompt);
  const host = engine.value;
  if (!host) throw new Error('no engine');
  const longer = await host.randomModel(
    { ...toyConfig, maxSeqLen: longPrompt },
    { seed: toySeed, dtype: 'f64' },
  );
  try {
    return await onSession(id, longer, longPrompt);
  } finally {
    await longer.dispose();
  }
}

function outcomeOf(id: AttemptId, model: EngineModel | undefined): Promise<Outcome> {
  if (!model || id === 'editBorrowed' || id === 'bindAfterEdit' || id === 'plantNaN')
    return onWeights(id);
  if (id === 'abortPrefill') return onLongSession(id, model);
  return onSession(id, model, Math.min(4, model.config.maxSeqLen));
}

export const attempt = (id: AttemptId): Promise<boolean> =>
  run('break', 'break', async () => {
    const current = live.value;
    const own = current?.session.cache;
    const ownBefore = await own?.contentHashes();
    const outcome = await outcomeOf(id, current?.model);
    const ownAfter = await own?.contentHashes();
    const { before, after } = outcome;
    attempts.value = {
      ...attempts.value,
      [id]: {
        ...outcome,
        unchanged:
          before.kvLen === after.kvLen &&
          before.work === after.work &&
          sameHashes(before.hashes, after.hashes),
        own: own &&
          ownBefore &&
          ownAfter && { nRows: await own.len(), unchanged: sameHashes(ownBefore, ownAfter) },
      },
    };
  });

export async function attemptAll(): Promise<void> {
  for (const id of attemptIds) await attempt(id);
}
