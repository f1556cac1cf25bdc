/** The page's side of a session and of its cache. */
import type {
  CacheRow,
  CallOptions,
  EngineCache,
  EngineGenerateRequest,
  EngineModel,
  EngineReplayOptions,
  EngineSession,
  GenerationStream,
  LongCallOptions,
  SessionState,
} from '../engine-api.js';
import type {
  CaptureOptions,
  ComputeType,
  Contrast,
  Draw,
  Evidence,
  FloatArray,
  KvDType,
  RankedToken,
  Replay,
  SamplingOptions,
  Step,
  StepOptions,
  Tensor,
  TokenIds,
  Verification,
  Work,
} from '../types.js';
import type { CallHooks, Connection } from './connection.js';
import type { CacheDescription, SessionDescription } from './messages.js';
import { TokenStream } from './stream.js';

export class RemoteCache implements EngineCache {
  readonly id: number;
  readonly compute: ComputeType;
  readonly kvDtype: KvDType;
  readonly capacity: number;
  readonly nLayers: number;
  readonly bytes: number;
  readonly connection: Connection;

  constructor(
    connection: Connection,
    { id, compute, kvDtype, capacity, nLayers, bytes }: CacheDescription,
  ) {
    this.connection = connection;
    this.id = id;
    this.compute = compute;
    this.kvDtype = kvDtype;
    this.capacity = capacity;
    this.nLayers = nLayers;
    this.bytes = bytes;
  }

  len(): Promise<number> {
    return this.connection.call('cacheLen', [this.id]);
  }

  async tokens(): Promise<Uint32Array<ArrayBuffer>> {
    return (await this.connection.call('cacheTokens', [this.id])) as Uint32Array<ArrayBuffer>;
  }

  row(layer: number, kvHead: number, position: number): Promise<CacheRow> {
    return this.connection.call('cacheRow', [this.id, layer, kvHead, position]);
  }

  layer(index: number): Promise<{ keys: Tensor; values: Tensor }> {
    return this.connection.call('cacheLayer', [this.id, index]);
  }

  contentHashes(nRows?: number): Promise<string[]> {
    return this.connection.call('contentHashes', [this.id, nRows]);
  }

  prefixHashes(lengths: readonly number[]): Promise<string[][]> {
    return this.connection.call('prefixHashes', [this.id, lengths]);
  }

  dispose(): Promise<void> {
    return this.connection.call('disposeCache', [this.id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

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
