// Makes dist/: the TypeScript of web/src compiled one to one, and the module's variants beside it.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, '.build/dist'); // takes the place of dist/ when it is complete
const variants = (process.env.KVLENS_VARIANTS ?? 'simd,relaxed,simd-mt,relaxed-mt').split(',');

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
const tsc = spawnSync('node', ['node_modules/typescript/bin/tsc', '-p', 'web', '--outDir', dist], {
  cwd: root,
  stdio: 'inherit',
});
if (tsc.status !== 0) process.exit(1);
for (const variant of variants) {
  for (const extension of ['mjs', 'wasm']) {
    copyFileSync(
      join(root, `.build/wasm/kvlens-${variant}.${extension}`),
      join(dist, `kvlens-${variant}.${extension}`),
    );
  }
}
// All variants are declared alike; the package compiles against this one.
copyFileSync(join(root, '.build/wasm/kvlens-simd.d.ts'), join(dist, 'kvlens-simd.d.ts'));
rmSync(join(root, 'dist'), { recursive: true, force: true });
renameSync(dist, join(root, 'dist'));
console.log(`dist: ${variants.length} variants of the module`);
