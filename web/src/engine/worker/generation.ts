/** Prompt to stream of tokens, on a session whose cache may hold a part of the prompt already. */
import type { EngineGenerateRequest, GenerationResult } from '../../engine-api.js';
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
} from '../../types.js';
import { aborted, type Call } from './call.js';
import { pieceOf, withPieces } from './step-reads.js';
import { StopStrings } from './stop-strings.js';
import { encodeOptions, type WorkerModel } from './worker-model.js';
import type { WorkerSession } from './worker-session.js';
import { yieldToMessages } from './yield-to-messages.js';

/** A request that has been checked. */
export interface TokenRequest
  extends
    SamplingOptions,
    CaptureOptions,
    Required<
      Pick<EngineGenerateRequest, 'maxNewTokens' | 'stop' | 'eosTokens' | 'logprobs' | 'pieces'>
    > {
  readonly seed: bigint;
  /** Resolves to the ids of the prompt. */
  readonly promptTokens: (signal: AbortSignal) => Uint32Array | Promise<Uint32Array>;
}

/** Checks what does not depend on the session. Errors: invalid_argument, those of tokenizers. */
export function tokenRequest(request: EngineGenerateRequest, model: WorkerModel): TokenRequest {
  const { tokenizer } = model;
  const stop = request.stop ?? [];
  if (!Array.isArray(stop) || stop.some((text) => typeof text !== 'string' || text === '')) {
    throw check.invalidArgument('stop', stop, 'texts that are not empty');
  }
  if (stop.length > 0 && tokenizer === undefined)
    throw check.invalidArgument('stop', stop, 'none, without a tokenizer');
  const pieces = check.flag('pieces', request.pieces ?? false);
  if (pieces) model.needTokenizer();
  const seed = request.seed ?? 0;
  if (typeof seed === 'number' && !Number.isSafeInteger(seed))
    throw check.invalidArgument('seed', seed, 'integers and bigints');
  return {
    ...request,
    promptTokens: promptTokens(request, model),
    maxNewTokens: check.count('maxNewTokens', request.maxNewTokens ?? 256),
    stop,
    eosTokens: [...check.counts('eosTokens', request.eosTokens ?? tokenizer?.stopIds ?? [])],
    logprobs: check.count('logprobs', request.logprobs ?? 0),
    pieces,
    seed: check.state64('seed', typeof seed === 'number' ? BigInt.asUintN(64, BigInt(seed)) : seed),
  };
}

/** How the prompt of a request becomes ids. Errors: those of `tokenRequest`. */
function promptTokens(
  request: EngineGenerateRequest,
  model: WorkerModel,
): (signal: AbortSignal) => Uint32Array | Promise<Uint32Array> {
  const { prompt, messages, tokens } = request;
  const given = [prompt, messages, tokens].filter((each) => each !== undefined).length;
  if (given !== 1)
    throw check.invalidArgument('request', `${given} prompts`, 'one of prompt, messages, tokens');
  if (tokens !== undefined) {
    const ids = check.counts('tokens', tokens);
    return () => ids;
  }
  const { bosId } = model.needTokenizer();
  if (messages !== undefined) {
    const literal = check.flag('literalContent', request.literalContent ?? false);
    const options = { ...request.template, addGenerationPrompt: true };
    model.renderChat(messages, options); // its errors come before the session is touched
    return (signal) => model.encodeChat(messages, options, literal, signal);
  }
  const options = encodeOptions(request);
  check.string('prompt', prompt);
  return async (signal) => {
    const ids = await model.encode(prompt!, options, signal);
    // A prompt that begins with BOS gets no second one.
    const hasBosTwice = options.addBos === undefined && ids[0] === bosId && ids[1] === bosId;
    return hasBosTwice ? ids.subarray(1) : ids;
  };
}

/**
 * Generates in the turn that `inTurn` gives. After an error or an abort the session is as it was
 * before; an abort is a result.
 */
export async function generate(
  target: WorkerSession,
  request: TokenRequest,
  tokenizer: Tokenizer | undefined,
  call: Call,
  inTurn: <T>(run: () => Promise<T>) => Promise<T>,
): Promise<GenerationResult> {
  const { session } = target;
  const rng = { state: request.seed };
  let start = performance.now();
  let reusedTokens = 0;
  // Encoding touches no session, so it does not wait for the turn.
  const pending = Promise.resolve(request.promptTokens(call.signal));
  pending.catch(() => undefined); // reported below
  let prompt = new Uint32Array() as Uint32Array;
  try {
    const done = await inTurn(async () => {
      start = performance.now();
      prompt = await pending;
      reusedTokens = keptRows(session.tokens(), prompt, session.hasLogits);
      return target.undoneOnError(() =>
        run(target, request, prompt, tokenizer, call, reusedTokens, rng),
      );
    });
    return {
      ...done,
      promptTokens: prompt.length,
      reusedTokens,
      kvLen: session.kvLen,
      milliseconds: performance.now() - start,
      rngState: rng.state,
    };
  } catch (error) {
    if (!isKvLensError(error) || error.code !== 'aborted' || session.disposed) throw error;
    prompt = await pending.catch(() => prompt);
    return {
      tokens: new Uint32Array(),
      text: '',
      stop: 'aborted',
      promptTokens: prompt.length,
      reusedTokens,
      kvLen: session.kvLen,
      work: zeroWork(),
      milliseconds: performance.now() - start,
      rngState: request.seed,
    };
  }
}

/**
 * Rows of the cache that the prompt can use. The last token runs again if its logits are gone.
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
  prompt: Uint32Array,
  tokenizer: Tokenizer | undefined,
  call: Call,
  reused: number,
  rng: { state: bigint },
): Promise<Pick<GenerationResult, 'tokens' | 'text' | 'stop' | 'work'>> {
  const { session } = target;
  const { signal } = call;
  const options: StepOptions = {
    logits: false,
    capture: request.capture ?? 'none',
    rows: request.rows ?? 'last',
    ...(request.layers && { layers: request.layers }),
  };
  check.capture(options, session.model.config.nLayers);
  check.sampling(request);
  const tokens: number[] = [];
  let work = zeroWork();
  let text = '';
  const result = (stop: GenerationResult['stop']) => ({
    tokens: Uint32Array.from(tokens),
    text,
    stop,
    work,
  });
  if (request.maxNewTokens === 0) return result('token_limit');

  let { step, evidence } = await prepare(target, prompt, reused, options, call);
  work = step.work;
  const decoder = tokenizer?.decoder(prompt);
  const stops = new StopStrings(request.stop);
  for (;;) {
    const [best] = session.topTokens(1);
    const draw = session.sample(request, rng);
    const shown = request.pieces ? tokenizer : undefined;
    const candidates =
      request.logprobs > 0 ? withPieces(session.topTokens(request.logprobs), shown) : undefined;
    const shownPiece = shown && pieceOf(shown, draw.token);
    const kvLen = session.kvLen;
    tokens.push(draw.token);
    const isEos = request.eosTokens.includes(draw.token);
    let piece = stops.push(decoder?.push(draw.token) ?? '');
    // A stop may contain the names of control tokens, which have no text.
    if (!stops.found) piece += stops.push(tokenizer?.specialName(draw.token) ?? '', true);
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
    call.onToken?.({
      token: draw.token,
      text: piece,
      // The best token's logit less its log probability is the logarithm of the softmax's sum.
      logprob: session.logit(draw.token) - (best!.logit - best!.logprob),
      ...(candidates && { topTokens: candidates }),
      ...(shownPiece !== undefined && { piece: shownPiece }),
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
    const { logits, evidence: next, ...info } = session.decode(draw.token, options);
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
  call: Call,
): Promise<{ step: StepInfo; evidence: Evidence | undefined }> {
  const { session } = target;
  const { lastStep } = session;
  if (reused > 0 && reused === prompt.length && lastStep !== undefined) {
    // Nothing to compute: an earlier call gave the logits, and its work belongs to that call.
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
  if (reused === 0 && session.kvLen > 0) session.clear();
  else if (reused < session.kvLen) session.truncate(reused);
  const phase = session.kvLen === 0 ? 'prefill' : 'extend';
  const { logits, evidence, ...step } = await target.forward(
    call,
    phase,
    prompt.subarray(reused),
    options,
  );
  return { step, evidence };
}
