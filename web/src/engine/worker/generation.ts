/** Prompt to stream of tokens, on a session whose cache may hold a part of the prompt already. */
import type { EngineGenerateRequest, GeneratedToken, GenerationResult } from '../../engine-api.js';
import * as check from '../../core/arguments.js';
import { addWork, zeroWork } from '../../core/work.js';
import { isKvLensError } from '../../errors.js';
import type { Tokenizer } from '../../text/tokenizer.js';
import type {
  CaptureOptions,
  Evidence,
  SamplingOptions,
  StepInfo,
  StepOptions,
  Work,
} from '../../types.js';
import { yieldToMessages } from './yield-to-messages.js';
import { StopStrings } from './stop-strings.js';
import { aborted, type Running, type WorkerSession } from './worker-session.js';

/** A request whose prompt has become tokens. */
export interface TokenRequest
  extends
    SamplingOptions,
    CaptureOptions,
    Required<Pick<EngineGenerateRequest, 'maxNewTokens' | 'stop' | 'eosTokens' | 'logprobs'>> {
  readonly tokens: Uint32Array;
  readonly seed: bigint;
}

/** Checks everything that does not depend on the cache. Errors: invalid_argument. */
export function tokenRequest(
  request: EngineGenerateRequest,
  tokens: Uint32Array,
  tokenizer: Tokenizer | undefined,
): TokenRequest {
  const stop = request.stop ?? [];
  if (!Array.isArray(stop) || stop.some((text) => typeof text !== 'string' || text === '')) {
    throw check.invalidArgument('stop', stop, 'texts that are not empty');
  }
  if (stop.length > 0 && tokenizer === undefined)
    throw check.invalidArgument('stop', stop, 'none, without a tokenizer');
  const seed = request.seed ?? 0;
  if (typeof seed === 'number' && !Number.isSafeInteger(seed))
    throw check.invalidArgument('seed', seed, 'integers and bigints');
  return {
    ...request,
    tokens,
    maxNewTokens: check.count('maxNewTokens', request.maxNewTokens ?? 256),
    stop,
    eosTokens: [...check.counts('eosTokens', request.eosTokens ?? tokenizer?.stopIds ?? [])],
    logprobs: check.count('logprobs', request.logprobs ?? 0),
    seed: check.state64('seed', typeof seed === 'number' ? BigInt.asUintN(64, BigInt(seed)) : seed),
  };
}

/** All or nothing: after an error or an abort the session is as it was before. */
export async function generate(
  target: WorkerSession,
  request: TokenRequest,
  tokenizer: Tokenizer | undefined,
  running: Running,
  onToken: (token: GeneratedToken) => void,
): Promise<GenerationResult> {
  const snapshot = target.snapshot();
  const rng = { state: request.seed };
  const start = performance.now();
  const reused = keptRows(snapshot.tokens, request.tokens, snapshot.hasLogits);
  try {
    const done = await run(target, request, tokenizer, running, onToken, reused, rng);
    return {
      ...done,
      promptTokens: request.tokens.length,
      milliseconds: performance.now() - start,
      rngState: rng.state,
    };
  } catch (error) {
    if (target.session.disposed) throw error;
    if (!isKvLensError(error) || error.code !== 'module_aborted') target.restore(snapshot, reused);
    if (!isKvLensError(error) || error.code !== 'aborted') throw error;
    return {
      tokens: new Uint32Array(),
      text: '',
      stop: 'aborted',
      promptTokens: request.tokens.length,
      reusedTokens: reused,
      kvLen: target.session.kvLen,
      work: zeroWork(),
      milliseconds: performance.now() - start,
      rngState: request.seed,
    };
  }
}

/**
 * Rows of the cache that the prompt can use; the last token runs again when its logits are gone.
 */
function keptRows(held: Uint32Array, prompt: Uint32Array, hasLogits: boolean): number {
  let common = 0;
  while (common < held.length && common < prompt.length && held[common] === prompt[common])
    ++common;
  const logitsAreThere = hasLogits && held.length === prompt.length;
  return common === prompt.length && !logitsAreThere ? Math.max(0, common - 1) : common;
}

async function run(
  target: WorkerSession,
  request: TokenRequest,
  tokenizer: Tokenizer | undefined,
  running: Running,
  onToken: (token: GeneratedToken) => void,
  reused: number,
  rng: { state: bigint },
): Promise<Omit<GenerationResult, 'promptTokens' | 'milliseconds' | 'rngState'>> {
  const { session } = target;
  const { signal } = running;
  const options: StepOptions = {
    logits: false,
    capture: request.capture ?? 'none',
    rows: request.rows ?? 'last',
    ...(request.layers && { layers: request.layers }),
  };
  check.capture(options, session.model.config.nLayers);
  check.sampling(request);
  if (signal.aborted) throw aborted(signal);
  const tokens: number[] = [];
  let work: Work = zeroWork();
  let text = '';
  const result = (stop: GenerationResult['stop']) => ({
    tokens: Uint32Array.from(tokens),
    text,
    stop,
    reusedTokens: reused,
    kvLen: session.kvLen,
    work,
  });
  if (request.maxNewTokens === 0) return result('token_limit');

  let { step, evidence } = await prepare(target, request.tokens, reused, options, running);
  work = step.work;
  const decoder = tokenizer?.decoder(request.tokens);
  const stops = new StopStrings(request.stop);
  for (;;) {
    const [best] = session.topTokens(1);
    const draw = session.sample(request, rng);
    const candidates = request.logprobs > 0 ? session.topTokens(request.logprobs) : undefined;
    const kvLen = session.kvLen;
    tokens.push(draw.token);
    const isEos = request.eosTokens.includes(draw.token);
    let piece = stops.push(decoder?.push(draw.token) ?? '');
    const stop = isEos
      ? 'eos'
      : stops.found
        ? 'stop_string'
        : tokens.length === request.maxNewTokens
          ? 'token_limit'
          : kvLen === session.capacity
            ? 'context_limit'
            : undefined;
    if (stop !== undefined && stop !== 'stop_string')
      piece += stops.push(decoder?.end() ?? '') + stops.end();
    text += piece;
    onToken({
      token: draw.token,
      text: piece,
      // log softmax: the logit less what the best token's logit and its own logarithm differ by.
      logprob: session.logit(draw.token) - (best!.logit - best!.logprob),
      ...(candidates && { topTokens: candidates }),
      draw,
      position: kvLen,
      kvLen,
      step,
      work: step.work,
      ...(evidence && { evidence }),
    });
    if (stop !== undefined) return result(stop);
    await yieldToMessages();
    if (signal.aborted) throw aborted(signal);
    const { logits, evidence: next, ...info } = target.decode(draw.token, options);
    step = info;
    evidence = next;
    work = addWork(work, info.work);
  }
}

/** Brings the cache to hold exactly the prompt, with logits after it. */
async function prepare(
  target: WorkerSession,
  prompt: Uint32Array,
  reused: number,
  options: StepOptions,
  running: Running,
): Promise<{ step: StepInfo; evidence: Evidence | undefined }> {
  const { session } = target;
  const { lastStep } = target;
  if (reused > 0 && reused === prompt.length && lastStep !== undefined) {
    // Nothing to compute: the logits are those of an earlier call, which did that call's work and
    // none now.
    return {
      step: {
        ...lastStep,
        work: zeroWork(),
        milliseconds: 0,
        rowsAppended: lastStep.rowsAppended.map(() => 0),
      },
      evidence: undefined,
    };
  }
  if (reused === 0 && session.kvLen > 0) target.clear();
  else if (reused < session.kvLen) target.truncate(reused);
  const phase = session.kvLen === 0 ? 'prefill' : 'extend';
  const { logits, evidence, ...step } = await target.forward(
    phase,
    prompt.subarray(reused),
    options,
    running,
  );
  return { step, evidence };
}
