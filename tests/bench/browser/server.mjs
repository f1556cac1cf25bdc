// A static server for the benchmark's pages. Its headers isolate the pages, so that memory can be
// shared between threads and clocks are fine-grained.
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const contentTypes = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
};

function statFile(path) {
  try {
    const stat = statSync(path);
    return stat.isFile() ? stat : undefined;
  } catch {
    return undefined;
  }
}

/** `folders` maps the first part of a path to a folder. Resolves to the server and its origin. */
export function serve(folders) {
  const server = createServer((request, response) => {
    const [, first, ...rest] = normalize(
      decodeURIComponent(new URL(request.url, 'http://local').pathname),
    ).split('/');
    const path = folders[first] && join(folders[first], ...rest);
    const stat = path && statFile(path);
    if (!stat) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      'Content-Type': contentTypes[extname(path)] ?? 'application/octet-stream',
      'Content-Length': stat.size,
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Embedder-Policy': 'require-corp',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Cache-Control': 'no-store',
    });
    createReadStream(path).pipe(response);
  });
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      resolve({ origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() });
    });
  });
}
