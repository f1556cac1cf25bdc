// Checks that every C++ file is as .clang-format says; with --fix makes it so.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const files = ['core', 'wasm', 'tests'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((path) => /\.(cc|h)$/.test(path) && !path.includes('node_modules'))
    .map((path) => join(folder, path)));
const run = (...mode) => {
  const { stderr, error } = spawnSync('clang-format-19', [...mode, ...files], { cwd: root, encoding: 'utf8' });
  if (error) throw error;
  return stderr;
};

if (process.argv.includes('--fix')) {
  run('-i');
} else {
  const unformatted = new Set([...run('--dry-run').matchAll(/^(.+?):\d+:\d+: /gm)].map(([, file]) => file));
  for (const file of unformatted) console.log(`${file}: not formatted (npm run format)`);
  process.exitCode = unformatted.size === 0 ? 0 : 1;
  if (unformatted.size === 0) console.log(`${files.length} C++ files are formatted`);
}
