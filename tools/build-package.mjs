// Makes dist/: the TypeScript of web/src compiled one to one, and the module's variants beside it.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unlessUpToDate } from './up-to-date.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, '.build/dist'); // takes the place of dist/ when it is complete
const variants = (process.env.KVLENS_VARIANTS ?? 'simd,relaxed,simd-mt,relaxed-mt').split(',');

// All variants are declared alike; the package compiles against this one.
const declarations = 'kvlens-simd.d.ts';
const modules = variants.flatMap((variant) => [`kvlens-${variant}.mjs`, `kvlens-${variant}.wasm`]);
const copies = [...modules, declarations];

function buildPackage() {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist, { recursive: true });
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const tsc = spawnSync('node', [compiler, '-p', 'web', '--outDir', dist], {
    cwd: root,
    stdio: 'inherit',
  });
  if (tsc.status !== 0) process.exit(1);
  for (const name of copies) copyFileSync(join(root, '.build/wasm', name), join(dist, name));
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  renameSync(dist, join(root, 'dist'));
  console.log(`dist: ${variants.length} variants of the module`);
}

await unlessUpToDate(
  'dist',
  {
    inputs: [
      'web/src',
      'web/tsconfig.json',
      'package-lock.json',
      'tools/build-package.mjs',
      ...copies.map((name) => `.build/wasm/${name}`),
    ],
    outputs: ['dist'],
  },
  buildPackage,
);
