/**
 * A ByteSource over HTTP.
 *
 * One probe (`Range: bytes=0-0`) finds the size and whether the server supports ranges. With
 * ranges, every read is one request. Without them, one response is read forwards and stays open
 * between reads, so a file that is read in order is downloaded once and never held in memory. A
 * read that goes backwards starts the download again. If the server does not state the size, the
 * whole body is held in memory.
 */
import { KvLensError } from '../errors.js';
import { bufferSource, checkRange, throwIfAborted, truncated, type ByteSource } from './source.js';

/** Options of requests. */
export interface HttpOptions {
  /** Used instead of the global `fetch`, for example to add headers. */
  readonly fetch?: typeof fetch;
  readonly signal?: AbortSignal;
}

/** A source over HTTP, with the validator of the version that it reads. */
export interface HttpSource extends ByteSource {
  /** The strong or weak ETag that the server sent, if any. */
  readonly etag: string | undefined;
  /** Ends the response that stays open between reads. A later read starts another one. */
  close(): void;
}

/**
 * Opens `url`. The result is undefined if the server answers 404 or 410.
 * Errors: network_error, aborted.
 */
export async function openHttp(
  url: string | URL,
  options: HttpOptions = {},
): Promise<HttpSource | undefined> {
  const client = new Client(String(url), options.fetch ?? fetch);
  const probe = await client.request(options.signal, 'bytes=0-0', [404, 410, 416]);
  const etag = probe.headers.get('etag') ?? undefined;
  if (probe.status === 404 || probe.status === 410) {
    await discard(probe);
    return undefined;
  }
  if (probe.status === 416) {
    // No byte 0: an empty file.
    await discard(probe);
    return inMemory(new Uint8Array(0), client.url, etag);
  }
  if (probe.status === 206) {
    await discard(probe);
    const size = totalOf(probe) ?? (await client.sizeByHead(options.signal));
    if (size !== undefined) return new RangedSource(client, size, etag);
  }
  const whole = probe.status === 200 ? probe : await client.request(options.signal);
  const size = lengthOf(whole);
  if (size !== undefined) {
    return new SequentialSource(client, size, etag, whole);
  }
  const body = await client.guard(options.signal, () => whole.arrayBuffer());
  return inMemory(new Uint8Array(body), client.url, etag);
}

function inMemory(bytes: Uint8Array, url: string, etag: string | undefined): HttpSource {
  return { ...bufferSource(bytes, url), etag, close: () => undefined };
}

class Client {
  constructor(
    readonly url: string,
    private readonly fetchFunction: typeof fetch,
  ) {}

  async request(
    signal: AbortSignal | undefined,
    range?: string,
    accepted: readonly number[] = [],
    method = 'GET',
  ): Promise<Response> {
    const response = await this.guard(signal, () =>
      this.fetchFunction.call(globalThis, this.url, {
        method,
        ...(range === undefined ? {} : { headers: { Range: range } }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    if (!response.ok && !accepted.includes(response.status)) {
      await discard(response);
      throw new KvLensError(
        'network_error',
        { url: this.url, status: response.status },
        `${this.url} answered with status ${response.status}`,
      );
    }
    return response;
  }

  /** The size, if Content-Range is hidden from cross-origin scripts. Content-Length never is. */
  async sizeByHead(signal: AbortSignal | undefined): Promise<number | undefined> {
    return lengthOf(await this.request(signal, undefined, [405, 501], 'HEAD'));
  }

  /** Runs `action` and turns whatever it rejects with into a KvLensError. */
  async guard<T>(signal: AbortSignal | undefined, action: () => Promise<T>): Promise<T> {
    throwIfAborted(signal);
    try {
      return await action();
    } catch (error) {
      throwIfAborted(signal);
      if (error instanceof KvLensError) throw error;
      throw new KvLensError(
        'network_error',
        { url: this.url },
        `${this.url} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
        error,
      );
    }
  }

  changed(what: string): KvLensError {
    return new KvLensError(
      'network_error',
      { url: this.url },
      `${this.url} changed while it was read: ${what}`,
    );
  }
}

class RangedSource implements HttpSource {
  readonly name: string;

  constructor(
    private readonly client: Client,
    readonly size: number,
    readonly etag: string | undefined,
  ) {
    this.name = client.url;
  }

  // No response stays open between reads.
  close(): void {}

  async read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    let filled = 0;
    for await (const piece of this.stream(offset, length, signal)) {
      bytes.set(piece, filled);
      filled += piece.byteLength;
    }
    return bytes;
  }

  async *stream(offset: number, length: number, signal?: AbortSignal): AsyncIterable<Uint8Array> {
    checkRange(this, offset, length);
    if (length === 0) return;
    const response = await this.client.request(signal, `bytes=${offset}-${offset + length - 1}`);
    const etag = response.headers.get('etag') ?? undefined;
    const start = startOf(response);
    if (response.status !== 206 || (start !== undefined && start !== offset)) {
      await discard(response);
      throw this.client.changed(`a range request was answered with status ${response.status}`);
    }
    if (etag !== this.etag) {
      await discard(response);
      throw this.client.changed(`its ETag was ${this.etag} and is ${etag}`);
    }
    let received = 0;
    for await (const piece of bodyOf(this.client, response, signal)) {
      received += piece.byteLength;
      if (received > length) throw this.client.changed('a range is longer than requested');
      yield piece;
    }
    if (received < length) throw truncated(this.name, offset + length, offset + received);
  }
}

class SequentialSource implements HttpSource {
  readonly name: string;
  private reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  private position = 0; // of the first byte not yet delivered
  private left: Uint8Array = new Uint8Array(0); // received and not yet delivered
  private turn: Promise<unknown> = Promise.resolve(); // one reader at a time

  constructor(
    private readonly client: Client,
    readonly size: number,
    readonly etag: string | undefined,
    first: Response,
  ) {
    this.name = client.url;
    this.reader = first.body?.getReader();
  }

  async read(offset: number, length: number, signal?: AbortSignal): Promise<Uint8Array> {
    checkRange(this, offset, length);
    return this.inTurn(async () => {
      const bytes = new Uint8Array(length);
      let filled = 0;
      await this.seek(offset, signal);
      while (filled < length) {
        const piece = await this.next(length - filled, signal);
        bytes.set(piece, filled);
        filled += piece.byteLength;
      }
      return bytes;
    });
  }

  async *stream(offset: number, length: number, signal?: AbortSignal): AsyncIterable<Uint8Array> {
    checkRange(this, offset, length);
    for (let done = 0; done < length;) {
      const piece = await this.inTurn(async () => {
        await this.seek(offset + done, signal);
        return this.next(length - done, signal);
      });
      done += piece.byteLength;
      yield piece;
    }
  }

  private inTurn<T>(action: () => Promise<T>): Promise<T> {
    const result = this.turn.then(action);
    this.turn = result.catch(() => undefined);
    return result;
  }

  private async seek(offset: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.reader === undefined || offset < this.position) {
      this.close();
      const response = await this.client.request(signal);
      const etag = response.headers.get('etag') ?? undefined;
      if (etag !== this.etag || lengthOf(response) !== this.size) {
        await discard(response);
        throw this.client.changed(`its ETag was ${this.etag} and is ${etag}`);
      }
      this.reader = response.body?.getReader();
    }
    while (this.position < offset) await this.next(offset - this.position, signal);
  }

  /** The next bytes, at most `limit` of them. */
  private async next(limit: number, signal: AbortSignal | undefined): Promise<Uint8Array> {
    while (this.left.byteLength === 0) {
      const reader = this.reader;
      const received = this.position;
      if (reader === undefined) throw truncated(this.name, this.size, received);
      try {
        const { done, value } = await this.client.guard(signal, () =>
          untilAborted(reader.read(), signal),
        );
        if (done) throw truncated(this.name, this.size, received);
        this.left = value;
      } catch (error) {
        this.close();
        throw error;
      }
    }
    const piece = this.left.subarray(0, limit);
    this.left = this.left.subarray(piece.byteLength);
    this.position += piece.byteLength;
    return piece;
  }

  close(): void {
    // Not awaited: after an abort the pending read must not hold the caller up.
    this.reader?.cancel().catch(() => undefined);
    this.reader = undefined;
    this.position = 0;
    this.left = new Uint8Array(0);
  }
}

async function* bodyOf(
  client: Client,
  response: Response,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await client.guard(signal, () => reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    // Ends the transfer when the consumer stopped early; a no-op after the last piece.
    await reader.cancel().catch(() => undefined);
  }
}

/** `action`, or a rejection as soon as the signal fires; `action` itself goes on unobserved. */
function untilAborted<T>(action: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return action;
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    action.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => undefined);
}

// "bytes 0-0/1234": the total is absent ("*") where the server does not know it.
function totalOf(response: Response): number | undefined {
  return parseSize(/\/(\d+)\s*$/.exec(response.headers.get('content-range') ?? '')?.[1]);
}

function startOf(response: Response): number | undefined {
  return parseSize(/^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '')?.[1]);
}

// The length of an encoded body is not the number of bytes that a reader gets.
function lengthOf(response: Response): number | undefined {
  if (!response.ok) return undefined;
  const encoding = response.headers.get('content-encoding');
  if (encoding !== null && encoding !== 'identity') return undefined;
  return parseSize(response.headers.get('content-length') ?? undefined);
}

function parseSize(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  const size = Number(text);
  return Number.isSafeInteger(size) ? size : undefined;
}
