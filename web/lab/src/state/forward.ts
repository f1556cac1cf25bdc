// The calls that change the session: prefill, decode, rewind, reset. The outcome of each goes into
// the trace, together with the hashes that show what happened to the rows that were there before.
import { batch } from '@preact/signals';
import type { CallOptions, Config, Draw } from 'kvlens';
import { AttentionStore, evidenceBytes } from '../figures/index.js';
import {
  attention,
  capacityLeft,
  cleared,
  currentCall,
  forgetRows,
  hasLogits,
  isLive,
  live,
  pending,
  promptText,
  promptTokens,
  rngState,
  rows,
  sampling,
  seed,
  trace,
  unpin,
} from './store.js';
import { lastCall, type Call, type How, type Row, type Token, type Trace } from './trace.js';
import { run, type JobOptions } from './jobs.js';

/** How many of the most likely next tokens are kept of each call. */
const nCandidates = 12;
/** Bytes above which a call captures its last attention row alone. A replay brings the others. */
const evidenceLimit = 64 * 2 ** 20;
/** Bytes of attention maps that one replay brings. */
const replayLimit = 192 * 2 ** 20;

function current(): { readonly live: NonNullable<typeof live.value>; readonly trace: Trace } {
  if (!live.value || !trace.value || !isLive.value) throw new Error('no live session');
  return { live: live.value, trace: trace.value };
}

const nothing = { nRows: 0, before: [], after: [] } as const;

/** Hashes of all rows in the cache, as the last call or rewind left them. */
function knownHashes(from: Trace): readonly string[] {
  const fork = from.forks.at(-1);
  return fork && fork.afterCalls === from.calls.length
    ? fork.check.after
    : (lastCall(from)?.hashes ?? []);
}

async function forward(
  tokens: readonly number[],
  how: How,
  draw: Draw | null,
  { signal, onProgress }: JobOptions,
): Promise<void> {
  const before = current();
  const { session, model } = before.live;
  const held = before.trace.rows.length;
  const { config, compute } = before.trace.model;
  // One message brings everything that the page shows of the call.
  const options: CallOptions = {
    logits: false,
    topTokens: nCandidates,
    prefixHashes: [held, held + tokens.length],
    pieces: model.tokenizer !== undefined,
    capture: 'attention',
    rows: evidenceBytes(config, held, tokens.length, compute) > evidenceLimit ? 'last' : 'all',
    signal,
    onProgress,
  };
  const first = tokens[0];
  const {
    logits: _,
    evidence,
    topTokens = [],
    prefixHashes: [after = [], hashes = []] = [],
    pieces = [],
    ...step
  } = held === 0 || first === undefined
    ? await session.prefill(tokens, options)
    : await session.decode(first, options);

  const call: Call = {
    tokens,
    how,
    draw,
    step,
    candidates: topTokens.map(({ piece, ...ranked }) => ({
      ...ranked,
      text: piece ?? String(ranked.token),
    })),
    check: held === 0 ? nothing : { nRows: held, before: knownHashes(before.trace), after },
    hashes,
    verification: null,
  };
  const added = tokens.map((id, i): Row => ({
    id,
    text: pieces[i] ?? String(id),
    phase: step.phase,
    call: before.trace.calls.length,
  }));
  batch(() => {
    trace.value = {
      ...before.trace,
      prompt: step.phase === 'prefill' && how === 'prompt' ? promptText.value : before.trace.prompt,
      promptTokens:
        step.phase === 'prefill' && how === 'prompt'
          ? promptTokens.value
          : before.trace.promptTokens,
      sampling: sampling.value,
      seed: String(seed.value),
      rows: [...before.trace.rows, ...added],
      calls: [...before.trace.calls, call],
    };
    attention.value?.append([...tokens], evidence);
    hasLogits.value = true;
  });
}

/** The attention of a model's run, without rows. */
export const emptyAttention = ({ nLayers, nHeads, slidingWindow }: Config): AttentionStore =>
  new AttentionStore({ nLayers, nHeads, slidingWindow });

/** Empties the session. `undoClear` brings the run back. */
async function clear(): Promise<void> {
  const before = current();
  await before.live.session.reset();
  batch(() => {
    cleared.value =
      before.trace.rows.length === 0
        ? undefined
        : {
            trace: before.trace,
            attention: attention.value,
            pending: pending.value,
            rngState: rngState.value,
          };
    trace.value = { ...before.trace, rows: [], calls: [], forks: [], replays: [] };
    attention.value = emptyAttention(before.trace.model.config);
    rngState.value = undefined;
    forgetRows();
  });
}

/**
 * Brings back the run that was cleared, and clears the present one. The rows are computed again;
 * everything shown about them was kept.
 */
export const undoClear = (): Promise<boolean> =>
  // Without a way to stop it: half-way there would be neither run.
  run('undo', 'run', async ({ onProgress }) => {
    const back = cleared.value;
    if (!back) return;
    await clear();
    const other = cleared.value;
    const ids = back.trace.rows.map(({ id }) => id);
    try {
      await current().live.session.prefill(ids, { onProgress });
    } catch (error) {
      cleared.value = back;
      throw error;
    }
    batch(() => {
      trace.value = back.trace;
      attention.value = back.attention;
      pending.value = back.pending;
      rngState.value = back.rngState;
      hasLogits.value = true;
      cleared.value = other;
    });
  });

async function keep(nRows: number): Promise<void> {
  const before = current();
  const { session } = before.live;
  const hashesBefore = await session.cache.contentHashes(nRows);
  await session.truncate(nRows);
  const hashesAfter = await session.cache.contentHashes();
  const check = { nRows, before: hashesBefore, after: hashesAfter };
  batch(() => {
    trace.value = {
      ...before.trace,
      rows: before.trace.rows.slice(0, nRows),
      forks: [...before.trace.forks, { afterCalls: before.trace.calls.length, check }],
      replays: before.trace.replays.filter(({ nTokens }) => nTokens <= nRows),
    };
    attention.value?.truncate(nRows);
    forgetRows();
  });
}

/** Computes the newest row again: a rewind keeps the rows, but not the logits after them. */
async function computeNewestAgain(options: JobOptions): Promise<void> {
  const newest = rows.value.at(-1);
  if (!newest) return;
  await keep(rows.value.length - 1);
  await forward([newest.id], 'again', null, options);
}

/** The whole prompt in one call; a filled session is reset first. */
export const prefillAll = (): Promise<boolean> =>
  run('prefill', 'prompt', async (options) => {
    if (rows.value.length > 0) await clear();
    await forward(
      promptTokens.value.map(({ id }) => id),
      'prompt',
      null,
      options,
    );
  });

/** The next token of the prompt alone. The first is prefilled, the others are decoded onto it. */
export const prefillNext = (): Promise<boolean> =>
  run('prefill', 'prompt', async (options) => {
    if (pending.value.length === 0) {
      if (rows.value.length > 0) await clear();
      const [first, ...others] = promptTokens.value;
      await forward(first ? [first.id] : [], 'prompt', null, options);
      pending.value = others;
    } else {
      const [next, ...others] = pending.value as [Token, ...Token[]];
      await forward([next.id], 'prompt', null, options);
      pending.value = others;
    }
  });

/** Repeats a run from its rows: one prefill for the first `prefilled`, a decode for each other. */
export const repeatRun = (ids: readonly number[], prefilled: number): Promise<boolean> =>
  run('prefill', 'run', async (options) => {
    const begin = Math.max(1, Math.min(prefilled, ids.length));
    await forward(ids.slice(0, begin), 'prompt', null, options);
    for (const id of ids.slice(begin)) {
      const how = currentCall.value?.candidates[0]?.token === id ? 'greedy' : 'clicked';
      await forward([id], how, null, options);
    }
  });

/** A token that the user picked. What was left of the prompt is dropped. */
export const decodeToken = (id: number): Promise<boolean> =>
  run('decode', 'run', async (options) => {
    await forward([id], 'clicked', null, options);
    pending.value = [];
  });

export const decodeGreedy = (): Promise<boolean> =>
  run('decode', 'run', async (options) => {
    if (!currentCall.value) await computeNewestAgain(options);
    const likeliest = currentCall.value?.candidates[0];
    if (likeliest) await forward([likeliest.token], 'greedy', null, options);
  });

export const decodeSampled = (): Promise<boolean> =>
  run('decode', 'run', async (options) => {
    if (!hasLogits.value) await computeNewestAgain(options);
    const drawn = await current().live.session.sample(sampling.value, rngState.value ?? seed.value);
    await forward([drawn.draw.token], 'sampled', drawn.draw, options);
    rngState.value = drawn.rngState;
  });

/** Keeps the first `nRows` rows. */
export const forkAt = (nRows: number): Promise<boolean> =>
  run('fork', 'run', () => (nRows === 0 ? clear() : keep(nRows)));

export const reset = (): Promise<boolean> => run('reset', 'run', clear);

/** The session's logits against a replay of all its tokens, run for real. */
export const verify = (): Promise<boolean> =>
  run('verify', 'verify', async (options) => {
    // The newest state is verified, so the page shows that one.
    unpin();
    if (!hasLogits.value) await computeNewestAgain({ ...options, onProgress: () => {} });
    const before = current();
    const verification = await before.live.session.verify(options);
    const last = before.trace.calls.length - 1;
    trace.value = {
      ...before.trace,
      calls: before.trace.calls.map((call, index) =>
        index === last ? { ...call, verification } : call,
      ),
    };
  });

/** Lengths that a call brought the session to and whose replay was not run yet. */
export function lengthsToReplay(): number[] {
  const shown = trace.value;
  if (!shown) return [];
  const run = new Set(shown.replays.map(({ nTokens }) => nTokens));
  for (const { verification } of shown.calls) if (verification) run.add(verification.nTokens);
  const reached = new Set(shown.calls.map(({ step }) => step.kvLen));
  return [...reached]
    .filter((length) => length <= shown.rows.length && !run.has(length))
    .sort((a, b) => a - b);
}

/**
 * Runs the replay of every prefix that a call gave logits of: what was computed is then measured.
 */
export const replayEach = (): Promise<boolean> =>
  run('replays', 'work', async ({ signal, onProgress }) => {
    const { session } = current().live;
    const ids = rows.value.map(({ id }) => id);
    const lengths = lengthsToReplay();
    for (const [done, nTokens] of lengths.entries()) {
      const { work, milliseconds } = await session.replay({
        tokens: ids.slice(0, nTokens),
        signal,
        onProgress: (of) => onProgress({ done: done + of.done / of.total, total: lengths.length }),
      });
      const { trace: before } = current();
      trace.value = { ...before, replays: [...before.replays, { nTokens, work, milliseconds }] };
    }
  });

/** Brings back the attention rows of a layer that were dropped or never captured. */
export const recomputeLayer = (layer: number): Promise<boolean> =>
  run('recompute', 'attention', async (options) => {
    const tensor = await current().live.session.attentionMaps([layer], options);
    attention.value?.addReplay([layer], tensor);
  });

/**
 * The same for every layer that lacks rows, several of them per replay. A stop keeps the layers
 * that are complete.
 */
export const recomputeAllLayers = (): Promise<boolean> =>
  run('recomputeAll', 'attention', async ({ signal, onProgress }) => {
    const { live, trace } = current();
    const store = attention.value;
    if (!store) return;
    const { config, compute } = trace.model;
    const layers = Array.from({ length: config.nLayers }, (_, layer) => layer).filter(
      (layer) => store.rowsPooled(layer) < store.length,
    );
    const layerBytes = evidenceBytes({ ...config, nLayers: 1 }, 0, store.length, compute);
    const perReplay = Math.max(1, Math.floor(replayLimit / layerBytes));
    for (let done = 0; done < layers.length; done += perReplay) {
      const group = layers.slice(done, done + perReplay);
      const tensor = await live.session.attentionMaps(group, {
        signal,
        onProgress: (of) =>
          onProgress({ done: done + (group.length * of.done) / of.total, total: layers.length }),
      });
      store.addReplay(group, tensor);
    }
  });

/** Whether a decode is possible now, and if not, why. */
export type Obstacle = 'not_live' | 'empty' | 'full';
export function obstacle(): Obstacle | undefined {
  if (!isLive.value) return 'not_live';
  if (rows.value.length === 0) return 'empty';
  return capacityLeft.value === 0 ? 'full' : undefined;
}
