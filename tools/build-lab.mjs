// Makes .build/lab: the Lab as static files, checked by the TypeScript compiler and built by Vite.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unlessUpToDate } from './up-to-date.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

function run(script, ...args) {
  const path = join(root, 'node_modules', script);
  if (spawnSync('node', [path, ...args], { cwd: root, stdio: 'inherit' }).status !== 0)
    process.exit(1);
}

await unlessUpToDate(
  'lab',
  {
    inputs: [
      'web/lab',
      'web/tsconfig.json',
      'dist',
      'tests/fixtures/stories260k',
      'package-lock.json',
      'tools/build-lab.mjs',
    ],
    outputs: ['.build/lab'],
  },
  () => {
    run('typescript/bin/tsc', '-p', 'web/lab');
    run('vite/bin/vite.js', 'build', 'web/lab', '--logLevel', 'warn');
    console.log('the Lab is in .build/lab');
  },
);
