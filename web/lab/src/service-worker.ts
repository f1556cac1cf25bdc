// Keeps the whole page for use without a network, and gives answers the two headers that let the
// page share memory between threads, on hosts that cannot be told to send them. The build fills in
// the list of files and their version.
/// <reference lib="webworker" />
const scope = globalThis as unknown as ServiceWorkerGlobalScope;

const version = 'kvlens-lab-__VERSION__';
const files: readonly string[] = ['__FILES__'];

scope.addEventListener('install', (event) => {
  const store = async (): Promise<void> => {
    const cache = await caches.open(version);
    await cache.addAll(files.map((file) => new Request(file, { cache: 'reload' })));
    await scope.skipWaiting();
  };
  event.waitUntil(store());
});

scope.addEventListener('activate', (event) => {
  const takeOver = async (): Promise<void> => {
    for (const name of await caches.keys()) {
      if (name.startsWith('kvlens-lab-') && name !== version) await caches.delete(name);
    }
    await scope.clients.claim();
  };
  event.waitUntil(takeOver());
});

function isolated(response: Response): Response {
  // Opaque and error answers cannot be rewritten.
  if (response.status === 0) return response;
  const headers = new Headers(response.headers);
  headers.set('Cross-Origin-Opener-Policy', 'same-origin');
  headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
  headers.set('Cross-Origin-Resource-Policy', 'same-origin');
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers });
}

/** The part of a stored file that a Range header asks for: checkpoints are read by ranges. */
async function partOf(stored: Response, range: string): Promise<Response> {
  const [, first = '', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(range) ?? [];
  const whole = await stored.blob();
  const begin = Number(first);
  const end = last === '' ? whole.size : Math.min(Number(last) + 1, whole.size);
  if (first === '' || begin >= end) {
    return new Response(null, {
      status: 416,
      headers: { 'Content-Range': `bytes */${whole.size}` },
    });
  }
  const headers = new Headers(stored.headers);
  headers.set('Content-Range', `bytes ${begin}-${end - 1}/${whole.size}`);
  headers.set('Content-Length', String(end - begin));
  return new Response(whole.slice(begin, end), { status: 206, headers });
}

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(version);
  // The state of the page is in its query; the document is the same for every state.
  const stored =
    request.mode === 'navigate'
      ? await cache.match(new URL('index.html', scope.registration.scope).href)
      : await cache.match(request, { ignoreSearch: true });
  const range = request.headers.get('range');
  return isolated(
    stored ? (range === null ? stored : await partOf(stored, range)) : await fetch(request),
  );
}

scope.addEventListener('fetch', (event) => {
  const { request } = event;
  const ours = request.url.startsWith(scope.registration.scope);
  if (request.method !== 'GET' || !ours) return;
  event.respondWith(answer(request));
});

export {};
