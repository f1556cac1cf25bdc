// Runs stages (tools/stages.mjs), in order, up to the first that fails:
//   node tools/run.mjs [GROUP...]      no group: every stage
// A stage's output goes to .build/logs/NAME.log; shown are the closing lines of its runners and, if
// it fails, all of it.
import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMet, requirements, titleOf } from './requirements.mjs';
import { setUp } from './setup.mjs';
import { selectStages } from './stages.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

// The lines by which GoogleTest, ctest, Vitest and Playwright, and our own tools, sum up, and the
// figures that tests print: rows of a table begin with a bar.
const closing = new RegExp(
  [
    /^\s*(\||\[ {2}GOLDEN {2}\])/,
    /tests (passed|failed)|\[ {2}(PASSED|FAILED) {2}\]/,
    /^\s*(Test Files|Tests) |^\s*\d+ (passed|failed|skipped)/,
    /are formatted|is up to date$|^clang-tidy: \d|^(#|ℹ) (pass|fail) \d/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

function runCommand([program, ...args], log) {
  return new Promise((resolve) => {
    log.write(`$ ${[program, ...args].join(' ')}\n`);
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false });
    child.on('error', (error) => log.write(`${error.message}\n`, () => resolve(false)));
    child.on('close', (code) => resolve(code === 0));
  });
}

async function runStage({ name, commands, needs }) {
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
  for (const need of needs.filter((need) => requirements[need].leavesOut && !isMet(need)))
    console.log(`not run: ${requirements[need].leavesOut} (${titleOf(need)} is missing)`);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`== ${name} ${passed ? 'passed' : 'FAILED'} in ${seconds} s`);
  return passed;
}

const selected = selectStages(process.argv.slice(2));
setUp(selected);

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
