// What the benchmark keeps outside the checkout: the peers and the made-up model files.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

import { writeGguf } from './gguf-file.mjs';
import { writeOnnx } from './onnx-file.mjs';

const cacheHome = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
export const cacheFolder = join(process.env.KVLENS_CACHE || join(cacheHome, 'kvlens'), 'bench');

export const peers = { '@wllama/wllama': '3.8.1', 'onnxruntime-web': '1.30.0' };

/** Installs what is missing of the peers. Returns why it could not, or nothing. */
export function installPeer(name) {
  const version = peers[name];
  const manifest = join(cacheFolder, 'node_modules', name, 'package.json');
  if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === version)
    return undefined;
  console.log(`installing ${name} ${version} in ${cacheFolder}`);
  mkdirSync(cacheFolder, { recursive: true });
  // With a package.json of its own, npm does not look for one in the folders above.
  if (!existsSync(join(cacheFolder, 'package.json'))) {
    writeFileSync(join(cacheFolder, 'package.json'), '{ "private": true }\n');
  }
  const { status, stderr } = spawnSync(
    'npm',
    [
      'install',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '--save-exact',
      `${name}@${version}`,
    ],
    { cwd: cacheFolder, encoding: 'utf8' },
  );
  return status === 0
    ? undefined
    : `npm could not install ${name} ${version}: ${stderr?.trim().split('\n')[0]}`;
}

const writers = {
  q8_0: { suffix: 'gguf', write: writeGguf },
  q4_0: { suffix: 'gguf', write: writeGguf },
  int8: { suffix: 'onnx', write: writeOnnx },
  f32: { suffix: 'onnx', write: writeOnnx },
};

// To be raised when what the writers write changes.
const revision = 2;

/** Path of the model file of one storage type, made when there is none. */
export function modelFile(weights) {
  const { suffix, write } = writers[weights];
  const path = join(cacheFolder, `model-${revision}-${weights}.${suffix}`);
  if (!existsSync(path)) {
    console.log(`making ${path}`);
    mkdirSync(cacheFolder, { recursive: true });
    const partial = `${path}.${process.pid}`;
    write(partial, weights);
    renameSync(partial, path);
  }
  return path;
}
