// Builds the page into .build/lab: relative URLs only, so that the folder works from any path. The
// development server serves the sources, and reloads when they or the package in dist/ change.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, transformWithOxc, type Plugin } from 'vite';

const inRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Asked for on every answer: only then may pages share memory between threads. */
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

const modelPath = 'models/stories260K-q8_0.gguf';
const modelFile = inRoot('tests/fixtures/stories260k/stories260K-q8_0.gguf');

/** The built-in checkpoint, from the fixtures: one copy in the repository is enough. */
function builtInModel(): Plugin {
  return {
    name: 'built-in-model',
    configureServer(server) {
      server.middlewares.use(`/${modelPath}`, (_request, response) => {
        response.setHeader('Content-Type', 'application/octet-stream');
        response.end(readFileSync(modelFile));
      });
    },
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: modelPath, source: readFileSync(modelFile) });
    },
  };
}

/** Writes sw.js with the list of all files and a version that is a hash of their contents. */
function serviceWorker(): Plugin {
  return {
    name: 'service-worker',
    apply: 'build',
    enforce: 'post',
    async generateBundle(_options, bundle) {
      const hash = createHash('sha256');
      const files = Object.keys(bundle)
        .filter((name) => !name.endsWith('.map'))
        .sort();
      for (const name of files) {
        const file = bundle[name];
        if (file) hash.update(name).update(file.type === 'chunk' ? file.code : file.source);
      }
      const path = inRoot('web/lab/src/service-worker.ts');
      const { code } = await transformWithOxc(readFileSync(path, 'utf8'), path);
      const source = code
        .replace(/^export \{\s*\};?$/m, '')
        .replace('__VERSION__', hash.digest('hex').slice(0, 16))
        .replace(
          /["']__FILES__["']/,
          [...files, 'icon.svg', 'manifest.webmanifest']
            .map((name) => JSON.stringify(name))
            .join(', '),
        );
      this.emitFile({ type: 'asset', fileName: 'sw.js', source });
    },
  };
}

export default defineConfig({
  root: inRoot('web/lab'),
  base: './',
  cacheDir: inRoot('.build/vite-lab'),
  resolve: {
    alias: [
      { find: /^kvlens$/, replacement: inRoot('dist/index.js') },
      { find: /^kvlens\/core$/, replacement: inRoot('dist/core.js') },
    ],
  },
  plugins: [builtInModel(), serviceWorker()],
  worker: { format: 'es' },
  server: { headers: isolation, port: 5173, strictPort: true, fs: { allow: [inRoot('.')] } },
  preview: { headers: isolation, port: 4173, strictPort: true },
  build: {
    outDir: inRoot('.build/lab'),
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    // The module's .wasm is a file of its own, never base64 inside JavaScript.
    assetsInlineLimit: 0,
  },
});
