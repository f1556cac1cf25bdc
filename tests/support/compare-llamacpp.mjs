// Compares kvlens with llama.cpp on SmolLM2-135M-Instruct, teacher-forced: kvlens answers a question
// greedily, llama.cpp sees the same 256 tokens, and the likeliest next token is compared after each. Prints
// the agreement; exits with 1 below 97 %. Both quantise activations to 8 bits, each in its own way, so
// where two tokens are nearly equal they may differ.
//
// llama.cpp comes as node-llama-cpp, which is installed on the first run into .build/oracle and is no
// dependency of the package. Needs `npm run build` and `node tests/support/fetch-smollm2.mjs` before.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { createEngine } from '../../dist/index.js';
import { smollm2Path } from './fetch-smollm2.mjs';

const version = '3.21.1';
const nTokens = 256;
const root = fileURLToPath(new URL('../..', import.meta.url));
const oracle = join(root, '.build/oracle');

const path = smollm2Path();
if (path === undefined) {
  console.error('the model is not there: node tests/support/fetch-smollm2.mjs fetches it');
  process.exit(1);
}
const entry = join(oracle, 'node_modules/node-llama-cpp/dist/index.js');
if (!existsSync(entry)) {
  mkdirSync(oracle, { recursive: true });
  writeFileSync(join(oracle, 'package.json'), '{ "private": true }\n');
  const npm = spawnSync('npm', ['install', '--no-audit', '--no-fund', `node-llama-cpp@${version}`], { cwd: oracle, stdio: 'inherit' });
  if (npm.status !== 0) process.exit(1);
}

const question = 'Explain what a lighthouse is, how it works, and why ships need it. Write several paragraphs.';
const engine = await createEngine({ threads: 1 });
const model = await engine.loadModel(path);
const prompt = await model.applyChatTemplate([{ role: 'user', content: question }]);
const promptTokens = [...(await model.tokenize(prompt, { addSpecial: false }))];

const { getLlama } = await import(pathToFileURL(entry).href);
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error' });
const theirModel = await llama.loadModel({ modelPath: path });
const theirTokens = [...theirModel.tokenize(prompt, true)];
console.log(`tokenizers agree on the prompt: ${String(theirTokens) === String(promptTokens)}`);
const session = await model.createSession({ capacity: promptTokens.length + nTokens });
const { tokens: answer } = await session.generate({ tokens: promptTokens, maxNewTokens: nTokens, eosTokens: [] }).result;

const tokens = [...promptTokens, ...answer].slice(0, -1);
const context = await theirModel.createContext({ contextSize: tokens.length + 1 });
const output = await context.getSequence().controlledEvaluate(
  tokens.map((token) => [token, { generateNext: { token: true, options: { temperature: 0 } } }]),
);
const theirs = output.slice(promptTokens.length - 1).map((each) => each?.next?.token);
const agreeing = theirs.filter((token, i) => token === answer[i]).length;
const percent = (100 * agreeing) / answer.length;
console.log(`likeliest next token: ${agreeing} of ${answer.length} positions agree with llama.cpp (${percent.toFixed(1)} %)`);
await engine.dispose();
await llama.dispose();
process.exit(percent >= 97 ? 0 : 1);
