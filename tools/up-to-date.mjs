// Keeps a step of the build from running when nothing that it reads has changed and everything that
// it wrote is as it was left. What it read and wrote is kept in .build/stamps.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

// The files at paths of the checkout, each a file or a folder.
function filesOf(paths) {
  return paths.flatMap((path) => {
    if (!existsSync(join(root, path))) return [];
    if (!statSync(join(root, path)).isDirectory()) return [path];
    return readdirSync(join(root, path), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(root.length))
      .sort();
  });
}

function hashOf(inputs) {
  const hash = createHash('sha256');
  for (const path of filesOf(inputs)) {
    hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  }
  return hash.digest('hex');
}

function stateOf(outputs) {
  return filesOf(outputs).map((path) => {
    const { size, mtimeMs } = statSync(join(root, path));
    return `${path} ${size} ${mtimeMs}`;
  });
}

// Runs `step` unless `outputs` are up to date with `inputs`. A step that fails throws, or ends the
// process.
export async function unlessUpToDate(name, { inputs, outputs }, step) {
  const stamp = join(root, `.build/stamps/${name}.json`);
  const input = hashOf(inputs);
  const current = () => JSON.stringify({ input, output: stateOf(outputs) });
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === current()) {
    console.log(`${name} is up to date`);
    return;
  }
  await step();
  mkdirSync(join(root, '.build/stamps'), { recursive: true });
  writeFileSync(stamp, current());
}
