// Runs the stages of the table below, in order, up to the first that fails:
//   node tools/run.mjs [GROUP...]      no group: everything but the groups in `onRequest`
// A stage's output goes to .build/logs/NAME.log; shown are the closing lines of its runners and, if
// it fails, all of it.
import { spawn, spawnSync } from 'node:child_process';
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const jobs = String(availableParallelism());

const configure = (preset) => ['cmake', '--preset', preset];
const buildPreset = (preset) => ['cmake', '--build', '--preset', preset, '-j', jobs];
const build = (preset) => [configure(preset), buildPreset(preset)];
const buildAndTest = (preset) => [...build(preset), ['ctest', '--preset', preset, '-j', jobs]];

const stages = [
  {
    name: 'lint',
    groups: ['lint'],
    commands: [
      ['node', 'tools/format.mjs'],
      ['npx', 'eslint', '--config', 'tools/eslint.config.mjs', '.'],
      ['npx', 'stylelint', 'web/**/*.css'],
    ],
  },
  {
    name: 'native',
    groups: ['core'],
    commands: [
      // ctest keeps to itself what a passing test prints; these say which golden folders were read.
      ...buildAndTest('dev'),
      ['.build/dev/tests/kvlens_core_tests', '--gtest_filter=GoldenFolders*', '--gtest_brief=1'],
    ],
  },
  { name: 'sanitizers', groups: ['core'], commands: buildAndTest('asan') },
  { name: 'wasm', groups: ['wasm'], commands: buildAndTest('wasm') },
  {
    name: 'clang-tidy',
    groups: ['lint'],
    commands: [
      ...build('tidy'),
      configure('wasm'),
      [...buildPreset('wasm'), '--target', 'kvlens_wasm_tidy'],
    ],
  },
  {
    name: 'build',
    groups: ['build', 'web'],
    commands: [...build('wasm'), ['node', 'tools/build-package.mjs']],
  },
  {
    name: 'web',
    groups: ['web'],
    commands: [
      ['npx', 'tsc', '-p', 'tests/web'],
      ['npx', 'vitest', 'run', '--no-color'],
    ],
  },
  {
    name: 'lab-build',
    groups: ['lab-build'],
    commands: [
      ['npx', 'tsc', '-p', 'web/lab'],
      ['npx', 'vite', 'build', 'web/lab', '--logLevel', 'warn'],
    ],
  },
  {
    name: 'lab',
    groups: ['lab'],
    commands: [
      ['npx', 'tsc', '-p', 'tests/lab'],
      ['npx', 'playwright', 'test', '-c', 'tests/lab/playwright.config.ts'],
    ],
  },
];
const onRequest = ['build'];

// The lines by which GoogleTest, ctest, Vitest and Playwright, and our own checks, sum up, and the
// figures that tests print: rows of a table begin with a bar.
const closing =
  /^\s*(\||\[ {2}GOLDEN {2}\])|tests (passed|failed)|\[ {2}(PASSED|FAILED) {2}\]|^\s*(Test Files|Tests) |^\s*\d+ (passed|failed|skipped)|are formatted/;

function runCommand([program, ...args], log) {
  return new Promise((resolve) => {
    log.write(`$ ${[program, ...args].join(' ')}\n`);
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false });
    child.on('error', (error) => log.write(`${error.message}\n`, () => resolve(false)));
    child.on('close', (code) => resolve(code === 0));
  });
}

async function runStage({ name, commands }) {
  console.log(`\n== ${name}`);
  const path = join(root, '.build/logs', `${name}.log`);
  const log = createWriteStream(path);
  const start = performance.now();
  let passed = true;
  for (const command of commands) passed &&= await runCommand(command, log);
  await new Promise((resolve) => log.end(resolve));
  const output = readFileSync(path, 'utf8');
  const shown = passed
    ? output
        .split('\n')
        .filter((line) => closing.test(line))
        .join('\n')
    : output;
  if (shown) console.log(shown);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`== ${name} ${passed ? 'passed' : 'FAILED'} in ${seconds} s`);
  return passed;
}

const groups = process.argv.slice(2);
const known = new Set(stages.flatMap((stage) => stage.groups));
for (const group of groups.filter((group) => !known.has(group))) {
  console.error(`unknown group "${group}"; there are: ${[...known].join(', ')}`);
  process.exit(2);
}
const selected = stages.filter((stage) =>
  groups.length > 0
    ? stage.groups.some((group) => groups.includes(group))
    : !stage.groups.every((group) => onRequest.includes(group)),
);

const setup = spawnSync('node', ['tools/setup.mjs'], { cwd: root, stdio: 'inherit' });
if (setup.status !== 0) process.exit(1); // it has said why

mkdirSync(join(root, '.build/logs'), { recursive: true });
let passed = 0;
let failed = 0;
for (const stage of selected) {
  if (await runStage(stage)) {
    ++passed;
  } else {
    ++failed;
    break;
  }
}
console.log(`\nstages: ${selected.map((stage) => stage.name).join(', ')}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1; // exit() could cut off what is still being printed
