// Checks each source of core/ and wasm/ with clang-tidy, as the builds `dev` and `wasm` compile it.
// A source that passed is not checked again until something changes that the result depends on: its
// text, a header of the project that it includes, the configuration, a command or a tool. What
// passed is kept in ${KVLENS_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kvlens}/clang-tidy; a failure never
// is.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from './requirements.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const cacheHome = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
const passed = join(process.env.KVLENS_CACHE ?? join(cacheHome, 'kvlens'), 'clang-tidy');
const clangTidy = findProgram('clang-tidy');

// clang-tidy's clang is older than Emscripten's, whose headers take these macros to be predefined.
function emscriptenArguments() {
  const cache = readFileSync(join(root, '.build/wasm/CMakeCache.txt'), 'utf8');
  const sysroot = /^KVLENS_SYSROOT:\w+=(.*)$/m.exec(cache)[1];
  const macros = [
    ...['INT8_C=c', 'INT16_C=c', 'INT32_C=c', 'INT64_C=c##LL', 'INTMAX_C=c##LL', 'UINT8_C=c'],
    ...['UINT16_C=c', 'UINT32_C=c##U', 'UINT64_C=c##ULL', 'UINTMAX_C=c##ULL'],
  ];
  return [
    '--target=wasm32-unknown-emscripten',
    `--sysroot=${sysroot}`,
    `-isystem${sysroot}/include/compat`,
    ...macros.map((macro) => `-D__${macro.replace('=', '(c)=')}`),
  ].map((argument) => `--extra-arg=${argument}`);
}

// The sources of `folder` that a build compiles, each once, with the arguments for clang-tidy.
function checksOf(build, folder, extra) {
  const database = join(root, `.build/${build}`);
  const commands = JSON.parse(readFileSync(join(database, 'compile_commands.json'), 'utf8'));
  const seen = new Map();
  for (const { file, command } of commands) {
    const path = relative(root, file);
    if (path.startsWith(folder) && !seen.has(path))
      seen.set(path, { path, command, args: ['--quiet', ...extra, '-p', database, path] });
  }
  return [...seen.values()];
}

// A source and the project's headers that it includes, directly or not.
function textsOf(path, texts = new Map()) {
  if (texts.has(path)) return texts;
  const text = readFileSync(join(root, path), 'utf8');
  texts.set(path, text);
  for (const [, name] of text.matchAll(/^#include "(.*)"/gm)) {
    const header = [dirname(path), 'core/include', 'core/src', 'wasm']
      .map((folder) => join(folder, name))
      .find((candidate) => existsSync(join(root, candidate)));
    if (header === undefined) throw new Error(`${path}: cannot find ${name}`);
    textsOf(header, texts);
  }
  return texts;
}

const versionOf = (program) =>
  program && spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout;

function keyOf({ path, command, args }, common) {
  // Paths of the checkout say nothing about its contents.
  const hash = createHash('sha256').update(common);
  hash.update(JSON.stringify([command, args]).replaceAll(root, ''));
  for (const [name, text] of textsOf(path)) hash.update(`\0${name}\0${text}`);
  return hash.digest('hex');
}

const configuration = readFileSync(join(root, '.clang-tidy'), 'utf8');
const checks = [
  ...checksOf('dev', 'core/src/', []),
  ...checksOf('wasm', 'wasm/', emscriptenArguments()),
];
const common = JSON.stringify([configuration, versionOf(clangTidy), versionOf('g++')]);
const stale = checks
  .map((check) => ({ ...check, stamp: join(passed, keyOf(check, common)) }))
  .filter(({ stamp }) => !existsSync(stamp));

mkdirSync(passed, { recursive: true });
let failures = 0;
async function checkNext() {
  for (let check = stale.shift(); check !== undefined; check = stale.shift()) {
    const { path, args, stamp } = check;
    const status = await new Promise((resolve) => {
      spawn(clangTidy, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
        .on('error', (error) => resolve(error.message))
        .on('close', resolve);
    });
    if (status === 0) {
      writeFileSync(stamp, `${path}\n`);
    } else {
      console.log(`clang-tidy: ${path} failed (${status})`);
      ++failures;
    }
  }
}
const toCheck = stale.length;
await Promise.all(Array.from({ length: availableParallelism() }, checkNext));
console.log(`clang-tidy: ${checks.length} sources, ${toCheck} checked, ${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
