// Compares kvlens with llama.cpp on SmolLM2-135M-Instruct, teacher-forced: all runs see the same
// tokens, and their likeliest next token is compared after each. The texts are kvlens' own greedy
// answer to a question, 256 tokens, and an essay. kvlens runs twice: in single precision, where
// products have activations of 8 bits, and in double precision over the exact dequantised weights,
// which tells whose rounding a difference is. llama.cpp rounds activations to 8 bits, and keys and
// values to half precision; it runs a second time without the latter.
//
// Prints two tables: which share of the next tokens agrees, with the gap between the two tokens'
// logits in double precision wherever they differ; and how far the log-probabilities of likely
// tokens are from those in double precision. Exits with 1 where fewer than 97 % of the answer's
// tokens agree with llama.cpp.
//
// llama.cpp comes as node-llama-cpp, which is installed on the first run into .build/oracle and is
// no dependency of the package. Needs `npm run build` and `node tools/fetch-smollm2.mjs` before.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { createEngine } from '../../dist/index.js';
import { smollm2Path } from './fetch-smollm2.mjs';

const version = '3.21.1';
const nTokens = 256;
/** Tokens less likely than this after a position are not compared there by their probability. */
const leastProbability = 1e-4;
/** llama.cpp's probabilities are looked at after every so many tokens. */
const probed = 8;
const question =
  'Explain what a lighthouse is, how it works, and why ships need it. Write several paragraphs.';
const root = fileURLToPath(new URL('..', import.meta.url));
const oracle = join(root, '.build/oracle');

const path = smollm2Path();
if (path === undefined) {
  console.error('the model is not there: node tools/fetch-smollm2.mjs fetches it');
  process.exit(1);
}
const entry = join(oracle, 'node_modules/node-llama-cpp/dist/index.js');
if (!existsSync(entry)) {
  mkdirSync(oracle, { recursive: true });
  writeFileSync(join(oracle, 'package.json'), '{ "private": true }\n');
  const npm = spawnSync(
    'npm',
    ['install', '--no-audit', '--no-fund', `node-llama-cpp@${version}`],
    { cwd: oracle, stdio: 'inherit' },
  );
  if (npm.status !== 0) process.exit(1);
}

const engine = await createEngine();
const model = await engine.loadModel(path);
const { vocabSize } = model.config;
const { getLlama } = await import(pathToFileURL(entry).href);
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error' });
const theirModel = await llama.loadModel({ modelPath: path });

/** The answer and the essay; `from`: the first position that counts. */
async function makeTexts() {
  const prompt = await model.applyChatTemplate([{ role: 'user', content: question }]);
  const promptTokens = [...(await model.tokenize(prompt, { addSpecial: false }))];
  const essay = readFileSync(new URL('essay.txt', import.meta.url), 'utf8');
  const essayTokens = [...(await model.tokenize(essay))];
  const agree =
    String(theirModel.tokenize(prompt, true)) === String(promptTokens) &&
    String(theirModel.tokenize(essay)) === String(essayTokens);
  console.log(`tokenizers agree on both texts: ${agree}`);
  const session = await model.createSession({ capacity: promptTokens.length + nTokens });
  const { tokens: answer } = await session.generate({
    tokens: promptTokens,
    maxNewTokens: nTokens,
    eosTokens: [],
  }).result;
  await session.dispose();
  return [
    {
      name: 'own answer',
      tokens: [...promptTokens, ...answer].slice(0, -1),
      from: promptTokens.length - 1,
    },
    { name: 'essay', tokens: essayTokens, from: 0 },
  ];
}

/**
 * A run: by position the likeliest next token, and the log-probabilities of all tokens (not at
 * every position).
 */
async function ours(compute, { tokens, from }) {
  const session = await model.createSession({ compute, capacity: tokens.length });
  const { data } = (await session.replay({ tokens, allLogits: true })).logits;
  await session.dispose();
  const rows = tokens
    .slice(from)
    .map((_, i) => logSoftmax(data.subarray((from + i) * vocabSize, (from + i + 1) * vocabSize)));
  return { likeliest: rows.map(likeliest), rows };
}

function logSoftmax(logits) {
  const largest = logits.reduce((most, logit) => Math.max(most, logit));
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return logits.map((logit) => logit - largest - Math.log(sum));
}

function likeliest(row) {
  return row.indexOf(row.reduce((most, value) => Math.max(most, value)));
}

/** As `ours`; llama.cpp gives probabilities as maps of the whole vocabulary, which takes long. */
async function theirs(contextOptions, { tokens, from }) {
  const context = await theirModel.createContext({
    contextSize: tokens.length + 1,
    ...contextOptions,
  });
  const greedy = { token: true, options: { temperature: 0 } };
  const whole = { probabilities: true, options: { temperature: 1, topK: 0, topP: 1, minP: 0 } };
  const output = await context
    .getSequence()
    .controlledEvaluate(
      tokens.map((token, i) => [token, { generateNext: i % probed === 0 ? whole : greedy }]),
    );
  await context.dispose();
  const run = { likeliest: [], rows: [] };
  for (const { next } of output.slice(from)) {
    const { probabilities } = next; // the largest first
    const row = probabilities && new Float64Array(vocabSize).fill(-Infinity);
    for (const [token, probability] of probabilities ?? []) row[token] = Math.log(probability);
    run.rows.push(row);
    run.likeliest.push(row ? likeliest(row) : next.token);
  }
  return run;
}

/**
 * How often two runs agree on the likeliest token, and how far apart its two logits are where they
 * do not.
 */
function agreement(a, b, exact) {
  const differing = [...exact.rows.keys()].filter((i) => a.likeliest[i] !== b.likeliest[i]);
  const gaps = differing.map((i) =>
    Math.abs(exact.rows[i][a.likeliest[i]] - exact.rows[i][b.likeliest[i]]),
  );
  const n = exact.rows.length;
  return { n, percent: (100 * (n - gaps.length)) / n, gaps: gaps.sort((x, y) => x - y) };
}

/** How far the log-probabilities of likely tokens are: root of the mean square, and the largest. */
function distance(run, exact) {
  let [n, sum, largest] = [0, 0, 0];
  exact.rows.forEach((row, i) => {
    if (run.rows[i] === undefined) return;
    row.forEach((value, token) => {
      if (value < Math.log(leastProbability)) return;
      const difference = Math.abs(run.rows[i][token] - value);
      ++n;
      sum += difference ** 2;
      largest = Math.max(largest, difference);
    });
  });
  return { rms: Math.sqrt(sum / n), largest };
}

const agreements = ['| text | runs | agree | gaps in f64 where they differ |', '|---|---|---|---|'];
const distances = [
  `| text | run | log-probabilities of tokens from ${leastProbability} on: rms from f64 | largest |`,
  '|---|---|---|---|',
];
let percentOfAnswer;
for (const text of await makeTexts()) {
  const f64 = await ours('f64', text);
  const runs = {
    'kvlens f32': await ours('f32', text),
    'llama.cpp': await theirs({}, text),
    'llama.cpp, cache in f32': await theirs(
      {
        flashAttention: false,
        experimentalKvCacheKeyType: 'F32',
        experimentalKvCacheValueType: 'F32',
      },
      text,
    ),
  };
  const addAgreement = (name, a, b) => {
    const { percent, n, gaps } = agreement(a, b, f64);
    const shown = gaps.map((gap) => gap.toFixed(3)).join(' ') || 'none';
    agreements.push(
      `| ${text.name} | ${name} | ${n - gaps.length} of ${n}: ${percent.toFixed(1)} % | ${shown} |`,
    );
    return percent;
  };
  const percent = addAgreement('kvlens f32, llama.cpp', runs['kvlens f32'], runs['llama.cpp']);
  percentOfAnswer ??= percent;
  for (const [name, run] of Object.entries(runs)) {
    addAgreement(`${name}, kvlens f64`, run, f64);
    const { rms, largest } = distance(run, f64);
    distances.push(`| ${text.name} | ${name} | ${rms.toFixed(4)} | ${largest.toFixed(3)} |`);
  }
}
console.log(`${agreements.join('\n')}\n\n${distances.join('\n')}`);
await engine.dispose();
await llama.dispose();
process.exit(percentOfAnswer >= 97 ? 0 : 1);
