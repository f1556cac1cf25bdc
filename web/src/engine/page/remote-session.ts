/** The page's side of a session. */
import type {
  CallOptions,
  EngineGenerateRequest,
  EngineModel,
  EngineReplayOptions,
  EngineSession,
  GenerationStream,
  LongCallOptions,
  SessionState,
} from '../../engine-api.js';
import type {
  CaptureOptions,
  ComputeType,
  Contrast,
  Draw,
  Evidence,
  FloatArray,
  RankedToken,
  Replay,
  SamplingOptions,
  Step,
  StepOptions,
  Tensor,
  TokenIds,
  Verification,
  Work,
} from '../../types.js';
import type { CallHooks, Connection } from './connection.js';
import type { SessionDescription } from '../protocol/messages.js';
import { RemoteCache } from './remote-cache.js';
import { TokenStream } from './token-stream.js';

/** Without what cannot be sent. */
function sent({ logits, ...options }: StepOptions): StepOptions {
  return { ...capture(options), ...(logits !== undefined && { logits }) };
}
function capture({ capture, layers, rows }: CaptureOptions): CaptureOptions {
  return { ...(capture && { capture }), ...(layers && { layers }), ...(rows && { rows }) };
}

function hooks({ signal, onProgress }: LongCallOptions): CallHooks {
  return {
    signal,
    onEvent:
      onProgress &&
      ((event) => {
        if (event.kind === 'progress') onProgress(event.progress);
      }),
  };
}

/** Whether the worker is to send progress. */
const watched = ({ onProgress }: LongCallOptions): boolean => onProgress !== undefined;

export class RemoteSession implements EngineSession {
  readonly model: EngineModel;
  readonly cache: RemoteCache;
  readonly #connection: Connection;
  readonly #id: number;

  constructor(
    connection: Connection,
    model: EngineModel,
    description: SessionDescription,
    cache?: RemoteCache,
  ) {
    this.#connection = connection;
    this.#id = description.id;
    this.model = model;
    this.cache = cache ?? new RemoteCache(connection, description.cache);
  }

  get compute(): ComputeType {
    return this.cache.compute;
  }

  get capacity(): number {
    return this.cache.capacity;
  }

  prefill(tokens: TokenIds, options: CallOptions = {}): Promise<Step> {
    return this.#connection.call(
      'forward',
      [this.#id, 'prefill', tokens, sent(options), watched(options)],
      hooks(options),
    );
  }

  decode(token: number, options: CallOptions = {}): Promise<Step> {
    return this.#connection.call('decode', [this.#id, token, sent(options)], hooks(options));
  }

  extend(tokens: TokenIds, options: CallOptions = {}): Promise<Step> {
    return this.#connection.call(
      'forward',
      [this.#id, 'extend', tokens, sent(options), watched(options)],
      hooks(options),
    );
  }

  replay(options: EngineReplayOptions = {}): Promise<Replay> {
    const { tokens, allLogits } = options;
    const given = {
      ...capture(options),
      ...(tokens && { tokens }),
      ...(allLogits !== undefined && { allLogits }),
    };
    return this.#connection.call('replay', [this.#id, given, watched(options)], hooks(options));
  }

  attentionMaps(layers: readonly number[], options: LongCallOptions = {}): Promise<Tensor> {
    return this.#connection.call(
      'attentionMaps',
      [this.#id, layers, watched(options)],
      hooks(options),
    );
  }

  verify(options: LongCallOptions = {}): Promise<Verification> {
    return this.#connection.call('verify', [this.#id, watched(options)], hooks(options));
  }

  contrast(options: LongCallOptions = {}): Promise<Contrast> {
    return this.#connection.call('contrast', [this.#id, watched(options)], hooks(options));
  }

  truncate(len: number): Promise<void> {
    return this.#connection.call('truncate', [this.#id, len]);
  }

  reset(): Promise<void> {
    return this.#connection.call('reset', [this.#id]);
  }

  state(): Promise<SessionState> {
    return this.#connection.call('state', [this.#id]);
  }

  work(): Promise<Work> {
    return this.#connection.call('work', [this.#id]);
  }

  logits(): Promise<FloatArray> {
    return this.#connection.call('logits', [this.#id]);
  }

  evidence(): Promise<Evidence | undefined> {
    return this.#connection.call('evidence', [this.#id]);
  }

  topTokens(n: number): Promise<RankedToken[]> {
    return this.#connection.call('topTokens', [this.#id, n]);
  }

  sample(sampling: SamplingOptions, rngState = 0n): Promise<{ draw: Draw; rngState: bigint }> {
    return this.#connection.call('sample', [this.#id, sampling, rngState]);
  }

  generate({ signal, onProgress, ...request }: EngineGenerateRequest): GenerationStream {
    const left = new AbortController();
    const either = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]);
    return new TokenStream(
      (onToken) =>
        this.#connection.call('generate', [this.#id, request, onProgress !== undefined], {
          signal: either,
          onEvent: (event) => {
            if (event.kind === 'token') onToken(event.token);
            else if (event.kind === 'progress') onProgress?.(event.progress);
          },
        }),
      (reason) => left.abort(reason),
    );
  }

  dispose(): Promise<void> {
    return this.#connection.call('disposeSession', [this.#id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
