// Keeps the whole page for use without a network, and gives answers the two headers that let the page
// share memory between threads, on hosts that cannot be told to send them. The build fills in the list of
// files and their version.
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

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(version);
  // The state of the page is in its query; the document is the same for every state.
  const stored =
    request.mode === 'navigate'
      ? await cache.match(new URL('index.html', scope.registration.scope).href)
      : await cache.match(request, { ignoreSearch: true });
  return isolated(stored ?? (await fetch(request)));
}

scope.addEventListener('fetch', (event) => {
  const { request } = event;
  const ours = request.url.startsWith(scope.registration.scope);
  // A part of a file is asked for with Range, which a stored whole answer does not satisfy.
  if (request.method !== 'GET' || !ours || request.headers.has('range')) return;
  event.respondWith(answer(request));
});

export {};
