// `npm run setup`: makes a checkout ready to build and test. Installs what is missing and nothing
// else, so that on a prepared machine it only looks, and takes no root.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

// What has to be on the machine: a program on PATH (with the lowest version that will do, where
// older ones are about) or a file. `package` is Debian's; `get` says how to come by it elsewhere.
const requirements = [
  { program: 'cmake', version: '3.25', package: 'cmake', get: 'https://cmake.org/download' },
  { program: 'ninja', package: 'ninja-build', get: 'https://ninja-build.org' },
  { program: 'g++', version: '12', package: 'g++', get: 'https://gcc.gnu.org' },
  { program: 'ccache', package: 'ccache', get: 'https://ccache.dev' },
  { program: 'xz', package: 'xz-utils', get: 'https://tukaani.org/xz' },
  { program: 'clang-format-19', package: 'clang-format-19', get: 'https://releases.llvm.org' },
  { program: 'clang-tidy-19', package: 'clang-tidy-19', get: 'https://releases.llvm.org' },
  {
    file: '/usr/src/googletest/CMakeLists.txt',
    name: 'GoogleTest 1.12 (sources)',
    package: 'googletest',
    get: 'https://github.com/google/googletest',
  },
  {
    file: '/usr/include/nlohmann/json.hpp',
    name: 'nlohmann/json 3.11',
    package: 'nlohmann-json3-dev',
    get: 'https://github.com/nlohmann/json',
  },
  {
    file: '/usr/include/benchmark/benchmark.h',
    name: 'Google Benchmark 1.7',
    package: 'libbenchmark-dev',
    get: 'https://github.com/google/benchmark',
  },
  { program: 'chromium', package: 'chromium', get: 'https://www.chromium.org' },
  {
    program: 'firefox-esr',
    package: 'firefox-esr',
    get: 'https://www.mozilla.org/firefox/enterprise',
  },
  {
    file: '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf',
    name: 'the DejaVu fonts',
    package: 'fonts-dejavu-core',
    get: 'https://dejavu-fonts.github.io',
  },
];
// Only to make the private Emscripten.
const emscriptenRequirements = [
  { program: 'debootstrap', package: 'debootstrap', get: 'https://wiki.debian.org/Debootstrap' },
  { program: 'bwrap', package: 'bubblewrap', get: 'https://github.com/containers/bubblewrap' },
];

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

function onPath(program) {
  return process.env.PATH.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function atLeast(actual, needed) {
  const [a, b] = [actual, needed].map((version) => version.split('.').map(Number));
  for (let i = 0; i < b.length; ++i) {
    if ((a[i] ?? 0) !== b[i]) return (a[i] ?? 0) > b[i];
  }
  return true;
}

function isMet({ program, version, file }) {
  if (file) return existsSync(file);
  if (!onPath(program)) return false;
  if (!version) return true;
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return atLeast(/\d+(\.\d+)+/.exec(stdout)?.[0] ?? '0', version);
}

const title = ({ name, program, version }) => name ?? (version ? `${program} ${version}` : program);

function installSystemPackages(needed) {
  const missing = needed.filter((requirement) => !isMet(requirement));
  if (missing.length === 0) return;
  if (process.getuid?.() === 0 && onPath('apt-get')) {
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    const packages = missing.map((requirement) => requirement.package);
    run('reading the lists of Debian packages', 'apt-get', ['update', '-q'], env);
    run(
      `installing ${packages.join(' ')}`,
      'apt-get',
      ['install', '-q', '-y', '--no-install-recommends', ...packages],
      env,
    );
  }
  for (const requirement of missing.filter((requirement) => !isMet(requirement))) {
    fail(
      `${title(requirement)} or newer is missing: install Debian's package ` +
        `${requirement.package} (as root: apt-get install ${requirement.package}) or see ${requirement.get}.`,
    );
  }
}

function installNpmPackages() {
  if (!existsSync(join(root, 'package-lock.json'))) return;
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

function unpackFixtures() {
  const source = join(root, 'tests/fixtures');
  const target = join(root, '.build/fixtures');
  const archives = readdirSync(source)
    .filter((name) => name.endsWith('.tar.xz'))
    .sort();
  const hash = createHash('sha256');
  for (const name of archives) hash.update(name).update(readFileSync(join(source, name)));
  const stamp = hash.digest('hex');
  const stampFile = '.archives.sha256';
  if (
    existsSync(join(target, stampFile)) &&
    readFileSync(join(target, stampFile), 'utf8') === stamp
  )
    return;

  // Under another name until complete, so that an interrupted run leaves nothing half unpacked.
  const partial = `${target}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  for (const name of archives) {
    run(`unpacking ${name}`, 'tar', ['-xJf', join(source, name), '-C', partial, '--no-same-owner']);
  }
  writeFileSync(join(partial, stampFile), stamp);
  rmSync(target, { recursive: true, force: true });
  renameSync(partial, target);
}

function installEmscripten() {
  const script = (name) => join(root, 'wasm/toolchain', name);
  if (spawnSync(script('find.sh')).status === 0) return;
  if (process.getuid?.() === 0) installSystemPackages(emscriptenRequirements);
  // Its own messages are the ones to show.
  if (spawnSync(script('install.sh'), { stdio: 'inherit' }).status !== 0) process.exit(1);
}

if (!atLeast(process.versions.node, '20'))
  fail('Node 20 or newer is needed: see https://nodejs.org.');
installSystemPackages(requirements);
installNpmPackages();
unpackFixtures();
installEmscripten();
