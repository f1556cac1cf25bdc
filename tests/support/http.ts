/**
 * A server behind `fetch`, so that sources can be tested without a network: with or without ranges,
 * sizes, validators, and with every way of breaking off.
 */
export interface Resource {
  bytes: Uint8Array<ArrayBuffer>;
  etag?: string;
  /** Whether ranges are served (default true). */
  ranges?: boolean;
  /** Whether responses tell their length (default true). */
  length?: boolean;
  /** Whether Content-Range is visible, as it is not to scripts of another origin (default true). */
  contentRange?: boolean;
  /** Bytes after which every body ends, whatever its length was said to be. */
  cutAfter?: number;
  /** Status of every response instead of 200. */
  status?: number;
}

export interface Server {
  readonly fetch: typeof fetch;
  readonly resources: Map<string, Resource>;
  /** What was asked for: method and range. */
  readonly requests: string[];
  /** Bytes sent in all. */
  sent: number;
}

export const origin = 'https://models.test';

const pieceBytes = 1000;

export function serve(resources: Record<string, Resource>): Server {
  const server: Server = {
    resources: new Map(Object.entries(resources)),
    requests: [],
    sent: 0,
    fetch: async (input, init) => {
      init?.signal?.throwIfAborted();
      const path = new URL(String(input)).pathname;
      const headers = new Headers(init?.headers);
      const method = init?.method ?? 'GET';
      server.requests.push(`${method} ${path} ${headers.get('range') ?? 'whole'}`);
      const resource = server.resources.get(path);
      if (resource === undefined) return new Response(null, { status: 404 });
      if (resource.status !== undefined) return new Response(null, { status: resource.status });
      return respond(server, resource, method, headers.get('range'), init?.signal ?? undefined);
    },
  };
  return server;
}

function respond(
  server: Server,
  resource: Resource,
  method: string,
  range: string | null,
  signal?: AbortSignal,
): Response {
  const total = resource.bytes.length;
  const headers = new Headers();
  if (resource.etag !== undefined) headers.set('etag', resource.etag);
  let [begin, end, status] = [0, total, 200];
  const wanted = /^bytes=(\d+)-(\d+)$/.exec(range ?? '');
  if (wanted && resource.ranges !== false) {
    begin = Number(wanted[1]);
    end = Math.min(Number(wanted[2]) + 1, total);
    if (begin >= total) return new Response(null, { status: 416 });
    status = 206;
    if (resource.contentRange !== false)
      headers.set('content-range', `bytes ${begin}-${end - 1}/${total}`);
  }
  if (resource.length !== false) headers.set('content-length', String(end - begin));
  if (method === 'HEAD') return new Response(null, { status, headers });
  const stop = Math.min(end, begin + (resource.cutAfter ?? Infinity));
  let position = begin;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (signal?.aborted) return controller.error(signal.reason);
        if (position >= stop) return controller.close();
        const piece = resource.bytes.slice(position, Math.min(stop, position + pieceBytes));
        position += piece.length;
        server.sent += piece.length;
        controller.enqueue(piece);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status, headers });
}
