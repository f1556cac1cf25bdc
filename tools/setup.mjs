// `npm run setup [GROUP...]`: makes a checkout ready for stages of `npm test` (tools/stages.mjs),
// all of them if none is named. First it says everything that is missing. Programs it installs only
// as root on Debian, as in a container; elsewhere it prints the command that does. On a prepared
// machine it only looks.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atLeast, installCommands, isMet, onPath, requirements, titleOf } from './requirements.mjs';
import { selectStages } from './stages.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

function fail(message) {
  console.error(`setup: ${message}`);
  process.exit(1);
}

// Output is shown only when the command fails: a good set-up is a quiet one.
function run(what, command, args, env = {}) {
  console.log(`setup: ${what}`);
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (error ?? status !== 0) {
    console.error(stdout, stderr);
    fail(`${what} failed: ${command} ${error ? error.message : `ended with ${status}`}.`);
  }
}

function installPrograms(names) {
  let missing = names.filter((name) => !isMet(name));
  if (missing.length === 0) return;
  console.log(`setup: missing: ${missing.map(titleOf).join(', ')}`);
  if (process.getuid?.() === 0 && onPath('apt-get')) {
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    const packages = missing.flatMap((name) => requirements[name].apt ?? []);
    run('reading the lists of Debian packages', 'apt-get', ['update', '-q'], env);
    run(
      `installing ${packages.join(' ')} with apt-get`,
      'apt-get',
      ['install', '-q', '-y', '--no-install-recommends', ...packages],
      env,
    );
    if (missing.includes('emscripten')) {
      const script = join(root, 'wasm/toolchain/install.sh'); // its own messages are the ones to show
      if (spawnSync(script, { stdio: 'inherit' }).status !== 0) process.exit(1);
    }
    missing = missing.filter((name) => !isMet(name));
    if (missing.length === 0) return;
    fail(`still missing: ${missing.map(titleOf).join(', ')}`);
  }
  const needed = missing.filter((name) => !requirements[name].optional);
  const optional = missing.filter((name) => requirements[name].optional);
  if (optional.length > 0)
    console.log(`setup: goes on without ${optional.map(titleOf).join(' and ')}`);
  if (needed.length > 0)
    fail(`to install it, run\n  ${installCommands(needed).join('\n  ')}\nand repeat the command.`);
}

function installNpmPackages() {
  const packages = (path) => JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
  const wanted = packages('package-lock.json');
  const hidden = 'node_modules/.package-lock.json'; // npm's own record of what it has installed
  const installed = existsSync(join(root, hidden)) ? packages(hidden) : {};
  const stale = Object.entries(wanted).some(
    ([path, { version, optional, devOptional }]) =>
      path !== '' && !optional && !devOptional && installed[path]?.version !== version,
  );
  if (stale) run('installing npm packages', 'npm', ['ci', '--no-audit', '--no-fund']);
}

// .build/fixtures: the archives of tests/fixtures unpacked, and its folders as they are.
function unpackFixtures() {
  const source = join(root, 'tests/fixtures');
  const target = join(root, '.build/fixtures');
  const entries = readdirSync(source, { withFileTypes: true });
  const archives = entries.map(({ name }) => name).filter((name) => name.endsWith('.tar.xz'));
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const files = folders.flatMap((folder) =>
    readdirSync(join(source, folder)).map((name) => join(folder, name)),
  );
  const hash = createHash('sha256');
  for (const path of [...archives, ...files].sort())
    hash.update(path).update(readFileSync(join(source, path)));
  const stamp = hash.digest('hex');
  const stampPath = join(target, '.archives.sha256');
  if (existsSync(stampPath) && readFileSync(stampPath, 'utf8') === stamp) return;

  // Under another name until complete, so that an interrupted run leaves nothing half unpacked.
  const partial = `${target}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  console.log(`setup: unpacking ${archives.length} archives of fixtures`);
  for (const name of archives) {
    const { status } = spawnSync(
      'tar',
      ['-xJf', join(source, name), '-C', partial, '--no-same-owner'],
      { stdio: 'inherit' },
    );
    if (status !== 0) fail(`tar cannot unpack tests/fixtures/${name}.`);
  }
  for (const folder of folders)
    cpSync(join(source, folder), join(partial, folder), { recursive: true });
  writeFileSync(join(partial, '.archives.sha256'), stamp);
  rmSync(target, { recursive: true, force: true });
  renameSync(partial, target);
}

// Makes the checkout ready for stages, or says what to do and ends the process.
export function setUp(stages) {
  if (!atLeast(process.versions.node, '20'))
    fail('Node 20 or newer is needed: see https://nodejs.org.');
  const needs = new Set(stages.flatMap((stage) => stage.needs));
  installPrograms(Object.keys(requirements).filter((name) => needs.has(name)));
  installNpmPackages();
  if (needs.has('xz')) unpackFixtures();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) setUp(selectStages(process.argv.slice(2)));
