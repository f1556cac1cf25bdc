// The state of the page: signals, and values computed from them. The other files here change them.
import { computed, signal } from '@preact/signals';
import type {
  AnyKvLensError,
  Engine,
  EngineModel,
  EngineSession,
  LoadProgress,
  SamplingOptions,
} from 'kvlens';
import type { AttentionStore, HeadRef } from '../figures/index.js';
import type { BuiltInId, Call, Token, Trace, TraceFault } from './trace.js';

/** A model that is loaded, with the session that the page drives. */
export interface Live {
  readonly model: EngineModel;
  readonly session: EngineSession;
  readonly builtIn: BuiltInId | null;
}

/** Where on the page a failure belongs. */
export type Site =
  | 'engine'
  | 'model'
  | 'prompt'
  | 'run'
  | 'cell'
  | 'attention'
  | 'verify'
  | 'work'
  | 'break'
  | 'export';

/** Something that went wrong: an error of the package, or a condition that the page found. */
export type Problem =
  | { readonly kind: 'error'; readonly error: AnyKvLensError }
  | { readonly kind: 'other'; readonly message: string }
  | { readonly kind: 'trace'; readonly fault: TraceFault }
  | { readonly kind: 'ids'; readonly text: string; readonly vocabSize: number }
  | { readonly kind: 'download_too_large'; readonly bytes: number; readonly limit: number }
  | { readonly kind: 'engine_ended' };

export type BusyKind =
  | 'load'
  | 'prefill'
  | 'decode'
  | 'fork'
  | 'undo'
  | 'reset'
  | 'verify'
  | 'recompute'
  | 'recomputeAll'
  | 'replays'
  | 'break';

/** A job that the user is waiting for. */
export interface Busy {
  readonly kind: BusyKind;
  /** May have fractions. */
  readonly done: number;
  /** 0 while it is not known. */
  readonly total: number;
}

export const engine = signal<Engine | undefined>(undefined);
export const live = signal<Live | undefined>(undefined);
export const loading = signal<
  { readonly name: string; readonly progress: LoadProgress | undefined } | undefined
>(undefined);
/** Set once the running job has taken a while. Nobody waits for a job that ends at once. */
export const busy = signal<Busy | undefined>(undefined);
/** The job that the user stopped last; undefined once another one runs. */
export const stopped = signal<BusyKind | undefined>(undefined);
export const problems = signal<Readonly<Partial<Record<Site, Problem>>>>({});
/** The text of the live region. */
export const announcement = signal('');

/**
 * The trace on the page: the live session's, or one from a file (`viewing` is then its file's
 * name).
 */
export const trace = signal<Trace | undefined>(undefined);
export const viewing = signal<string | undefined>(undefined);
/** The live session's trace while one from a file is shown. */
export const liveTrace = signal<Trace | undefined>(undefined);
export const attention = signal<AttentionStore | undefined>(undefined);

export const promptText = signal('');
export const promptTokens = signal<readonly Token[]>([]);
/** Prompt tokens still to go when the prompt is prefilled one at a time. */
export const pending = signal<readonly Token[]>([]);

export const sampling = signal<Required<SamplingOptions>>({
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  minP: 0,
  repetitionPenalty: 1,
});
export const seed = signal(38n);
/** State of the random generator after the draws so far; undefined until the first. */
export const rngState = signal<bigint | undefined>(undefined);

export const playing = signal(false);
/** Decode by sampling rather than greedily while playing. */
export const playSampled = signal(false);
/** Tokens per second while playing. */
export const speed = signal(8);

/** True while the session can be asked for a draw. Truncating takes its logits away. */
export const hasLogits = signal(false);

/** The run that was computed when the page opened. */
export const example = signal<
  { readonly tokens: number; readonly milliseconds: number; readonly model: string } | undefined
>(undefined);

/**
 * The one selection of the page: a position that every figure and the evidence show. While it is
 * null, they follow the newest row.
 */
export const pinnedPosition = signal<number | null>(null);
/** The KV head whose keys and values are shown. */
export const cell = signal<{ readonly layer: number; readonly kvHead: number }>({
  layer: 0,
  kvHead: 0,
});
/** The query head whose attention is shown. */
export const head = signal<HeadRef>({ layer: 0, head: 0 });

/** A run that was cleared and can be brought back. */
export interface ClearedRun {
  readonly trace: Trace;
  readonly attention: AttentionStore | undefined;
  readonly pending: readonly Token[];
  readonly rngState: bigint | undefined;
}
export const cleared = signal<ClearedRun | undefined>(undefined);

export const rows = computed(() => trace.value?.rows ?? []);
export const calls = computed(() => trace.value?.calls ?? []);
/** True if there is a session and its trace is the one shown, so that controls can act on it. */
export const isLive = computed(() => live.value !== undefined && viewing.value === undefined);

export const position = computed(() => {
  const last = rows.value.length - 1;
  return Math.min(pinnedPosition.value ?? last, last);
});

/** A step that made rows which are still there. */
export interface PresentStep {
  /** Into `calls`. */
  readonly index: number;
  /** The last row it made. */
  readonly lastPosition: number;
}

/** In order; what a rewind cut off is left out. */
export const presentSteps = computed<readonly PresentStep[]>(() => {
  const steps: PresentStep[] = [];
  rows.value.forEach(({ call: index }, lastPosition) => {
    if (steps.at(-1)?.index === index) steps.pop();
    steps.push({ index, lastPosition });
  });
  return steps;
});

/** Index into `presentSteps` of the step that made the selected row. */
export const shownStep = computed(() =>
  presentSteps.value.findIndex(({ lastPosition }) => lastPosition >= position.value),
);
export const shownCall = computed<Call | undefined>(
  () => calls.value[rows.value[position.value]?.call ?? -1],
);

/**
 * The call that ended with the rows that are there now; none right after a fork into a call's rows.
 */
export const currentCall = computed<Call | undefined>(() => {
  const length = rows.value.length;
  const index = rows.value[length - 1]?.call;
  const call = index === undefined ? undefined : calls.value[index];
  return call?.step.kvLen === length ? call : undefined;
});

export const capacityLeft = computed(() =>
  trace.value ? trace.value.model.capacity - rows.value.length : 0,
);

export function report(site: Site, problem: Problem): void {
  problems.value = { ...problems.value, [site]: problem };
}

export function clearProblem(...sites: readonly Site[]): void {
  if (!sites.some((site) => problems.value[site])) return;
  const rest = { ...problems.value };
  for (const site of sites) delete rest[site];
  problems.value = rest;
}

/** Releases the selection: everything follows the newest row again. */
export function unpin(): void {
  pinnedPosition.value = null;
}

/** Forgets what depended on rows that are gone. */
export function forgetRows(): void {
  pending.value = [];
  hasLogits.value = false;
  unpin();
  clearProblem('run', 'verify', 'attention', 'cell');
}

export function announce(text: string): void {
  announcement.value = text;
}
