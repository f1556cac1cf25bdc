// Checks the layout of every file: C++ with clang-format, everything else with Prettier. With --fix
// it rewrites the files that differ.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from './requirements.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const fix = process.argv.includes('--fix');
const cppFiles = ['core', 'wasm', 'tests'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((path) => /\.(cc|h)$/.test(path) && !path.includes('node_modules'))
    .map((path) => join(folder, path)),
);

const check = (program, args) => {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (error) throw error;
  return status === 0;
};

const cppOk = check(findProgram('clang-format'), [
  ...(fix ? ['-i'] : ['--dry-run', '-Werror']),
  ...cppFiles,
]);
const restOk = check('node', [
  'node_modules/prettier/bin/prettier.cjs',
  fix ? '--write' : '--check',
  '--log-level=warn',
  '--cache',
  '--cache-strategy=content',
  '--cache-location=.build/prettier-cache',
  '.',
]);
if (cppOk && restOk) console.log('all files are formatted');
else console.log('some files are not formatted: run `npm run format`');
process.exitCode = cppOk && restOk ? 0 : 1;
