// Serves the built page as a plain static host would: node server.mjs PORT PREFIX [isolated]
// `isolated` adds the two headers that a host should send; without them the service worker has to.
import { createServer } from 'node:http';
import { readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [port, prefix, mode] = process.argv.slice(2);
const folder =
  process.env.KVLENS_LAB ?? fileURLToPath(new URL('../../.build/lab', import.meta.url));
const types = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

function fileAt(path) {
  if (!path.startsWith(prefix)) return undefined;
  const file = join(folder, path.slice(prefix.length) || 'index.html');
  return file.startsWith(folder) && statSync(file, { throwIfNoEntry: false })?.isFile()
    ? file
    : undefined;
}

createServer((request, response) => {
  const file = fileAt(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
  if (!file) {
    response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not found');
    return;
  }
  response.writeHead(200, {
    'Content-Type': types[extname(file)] ?? 'application/octet-stream',
    'Cache-Control': 'no-cache',
    ...(mode === 'isolated' && isolation),
  });
  response.end(request.method === 'HEAD' ? undefined : readFileSync(file));
}).listen(Number(port), '127.0.0.1');
