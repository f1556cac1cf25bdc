// Bundles the page of kvlens as a user's application would, from the built package.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { build } from 'vite';

const inRoot = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const dist = inRoot('dist');

/** Why kvlens cannot be measured with these options, or nothing. */
export function missingBuild({ level, threads }) {
  const levels = level ? [level] : ['simd', 'relaxed'];
  const files = [
    'index.js',
    ...levels.flatMap((name) => threads.map((n) => `kvlens-${name}${n > 1 ? '-mt' : ''}.wasm`)),
  ];
  const missing = files.find((name) => !existsSync(`${dist}/${name}`));
  return missing && `kvlens is not built (dist/${missing} is missing): run \`npm run build\` first`;
}

/** Returns the folder that holds `kvlens.js`. */
export async function buildPage() {
  const outDir = inRoot('.build/bench/page');
  await build({
    configFile: false,
    logLevel: 'error',
    root: fileURLToPath(new URL('page', import.meta.url)),
    base: './',
    cacheDir: inRoot('.build/bench/vite'),
    resolve: { alias: [{ find: /^kvlens$/, replacement: `${dist}/index.js` }] },
    worker: { format: 'es' },
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      rollupOptions: {
        input: fileURLToPath(new URL('page/kvlens.mjs', import.meta.url)),
        preserveEntrySignatures: 'strict',
        output: { entryFileNames: 'kvlens.js' },
      },
    },
  });
  return outDir;
}
