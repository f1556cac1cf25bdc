// Checks that every C++ file is as .clang-format says; with --fix makes it so.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = ['core', 'wasm', 'tests'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((path) => /\.(cc|h)$/.test(path) && !path.includes('node_modules'))
    .map((path) => join(folder, path)));
const mode = process.argv.includes('--fix') ? ['-i'] : ['--dry-run', '-Werror'];
const { status, error } = spawnSync('clang-format-19', [...mode, ...files], { cwd: root, stdio: 'inherit' });
if (error) throw error;
console.log(status === 0 ? `${files.length} C++ files are formatted` : 'to format them: npm run format');
process.exit(status ?? 1);
