// The page shows a trace: plain data that a live session appends to and that a file can hold. All
// numbers in it come from the engine.
import type {
  ComputeType,
  Config,
  Draw,
  DType,
  RankedToken,
  SamplingOptions,
  StepInfo,
  Verification,
  Work,
} from 'kvlens';

export const TRACE_SCHEMA = 'kvlens-trace';
export const TRACE_VERSION = 1;

export type BuiltInId = 'stories260k' | 'toy';

export interface TraceModel {
  readonly name: string;
  /** Which built-in model it is; null for a file. */
  readonly builtIn: BuiltInId | null;
  readonly format: string;
  readonly architecture: string;
  /** Hash of configuration, names, storage types and bytes. */
  readonly hash: string;
  readonly nParameters: number;
  readonly parameterBytes: number;
  readonly dtypes: readonly (readonly [DType, number])[];
  readonly config: Config;
  readonly compute: ComputeType;
  readonly capacity: number;
  /** Without a tokenizer, tokens are their ids. */
  readonly hasTokenizer: boolean;
}

export interface Token {
  readonly id: number;
  /** The piece of text it stands for, or its id where there is no tokenizer. */
  readonly text: string;
}

/** A row of the cache. */
export interface Row extends Token {
  readonly phase: StepInfo['phase'];
  /** Index of the call that made it. */
  readonly call: number;
}

/** How the tokens of a call were chosen. `again`: decoded again to get the logits after it. */
export type How = 'prompt' | 'greedy' | 'sampled' | 'clicked' | 'again';

export interface Candidate extends RankedToken {
  readonly text: string;
}

/** Hashes of the rows that were there before, one per layer. */
export interface RowsCheck {
  readonly nRows: number;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export interface Call {
  readonly tokens: readonly number[];
  readonly how: How;
  /** How a sampled token was drawn. */
  readonly draw: Draw | null;
  readonly step: StepInfo;
  /** The most likely next tokens after the call, in order. */
  readonly candidates: readonly Candidate[];
  readonly check: RowsCheck;
  /** Hashes of all rows after the call, one per layer. */
  readonly hashes: readonly string[];
  readonly verification: Verification | null;
}

/** A rewind: rows were dropped to continue differently from there. */
export interface Fork {
  /** Calls made before it. */
  readonly afterCalls: number;
  readonly check: RowsCheck;
}

/** A replay that was run beside those of verifications. */
export interface ReplayRun {
  readonly nTokens: number;
  readonly work: Work;
  readonly milliseconds: number;
}

export interface Trace {
  readonly schema: typeof TRACE_SCHEMA;
  readonly version: typeof TRACE_VERSION;
  /** The module that computed it. */
  readonly module: { readonly version: string; readonly variant: string; readonly threads: number };
  readonly model: TraceModel;
  readonly prompt: string;
  readonly promptTokens: readonly Token[];
  readonly sampling: SamplingOptions;
  /** Decimal: a JSON number cannot hold 64 bits. */
  readonly seed: string;
  readonly rows: readonly Row[];
  readonly calls: readonly Call[];
  readonly forks: readonly Fork[];
  readonly replays: readonly ReplayRun[];
}

export const sameHashes = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((hash, index) => hash === b[index]);

/** The last call, or undefined before the first. */
export const lastCall = (trace: Trace): Call | undefined => trace.calls.at(-1);

/** Why a file is not a trace that this page can show. */
export type TraceFault = 'not_json' | 'not_a_trace' | 'other_version' | 'incomplete';

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isTokenList = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every(
    (token) => isRecord(token) && Number.isInteger(token.id) && typeof token.text === 'string',
  );

const isStringList = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const isNumbers = (value: unknown, names: readonly string[]): boolean =>
  isRecord(value) && names.every((name) => typeof value[name] === 'number');

const isCheck = (value: unknown): boolean =>
  isNumbers(value, ['nRows']) &&
  isRecord(value) &&
  isStringList(value.before) &&
  isStringList(value.after);

function isCall(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value.step)) return false;
  const { step } = value;
  return (
    ['prefill', 'decode', 'extend'].includes(step.phase as string) &&
    isNumbers(step, [
      'position',
      'kvLenBefore',
      'kvLen',
      'rowAttentionScoreValues',
      'milliseconds',
    ]) &&
    isNumbers(step.work, [
      'attentionScoreValues',
      'causalScoreValues',
      'multiplyAddsQkv',
      'kvBytesRead',
      'kvBytesWritten',
    ]) &&
    Array.isArray(step.rowsAppended) &&
    Array.isArray(value.tokens) &&
    Array.isArray(value.candidates) &&
    value.candidates.every((item) => isNumbers(item, ['token', 'logit', 'probability'])) &&
    isStringList(value.hashes) &&
    isCheck(value.check) &&
    (value.verification === null || isRecord(value.verification))
  );
}

/** A trace from the text of a file, checked as far as the page reads it. */
export function parseTrace(text: string): Trace | TraceFault {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'not_json';
  }
  if (!isRecord(value) || value.schema !== TRACE_SCHEMA) return 'not_a_trace';
  if (value.version !== TRACE_VERSION) return 'other_version';
  const { model } = value;
  const whole =
    isRecord(model) &&
    typeof model.name === 'string' &&
    typeof model.hash === 'string' &&
    isNumbers(model, ['capacity', 'nParameters', 'parameterBytes']) &&
    Array.isArray(model.dtypes) &&
    isNumbers(model.config, [
      'nLayers',
      'nHeads',
      'nKvHeads',
      'headDim',
      'dModel',
      'dFf',
      'vocabSize',
      'maxSeqLen',
    ]) &&
    isRecord(value.module) &&
    typeof value.prompt === 'string' &&
    isRecord(value.sampling) &&
    typeof value.seed === 'string' &&
    isTokenList(value.promptTokens) &&
    isTokenList(value.rows) &&
    Array.isArray(value.calls) &&
    value.calls.every(isCall) &&
    Array.isArray(value.replays) &&
    value.replays.every(
      (run) => isNumbers(run, ['nTokens', 'milliseconds']) && isRecord(run.work),
    ) &&
    Array.isArray(value.forks) &&
    value.forks.every((fork) => isRecord(fork) && isCheck(fork.check));
  return whole ? (value as unknown as Trace) : 'incomplete';
}
