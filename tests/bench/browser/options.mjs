// The command line of `npm run bench`.
import { parseArgs } from 'node:util';

export const runtimes = ['kvlens', 'wllama', 'onnxruntime-web'];

export const usage = `npm run bench -- [OPTION...]
  --runtimes LIST      of ${runtimes.join(', ')}; all by default
  --threads LIST       1,2 by default
  --repetitions N      4 by default (2 with --quick)
  --quick              fewer tokens, no 2,048 positions for the peers, no f32 graph: under 4 minutes
  --scaling            instead: cost of a token at 128 to 8192 positions, cached and replayed, and of evidence
  --weights q8_0|q4_0  for --scaling; q8_0 by default
  --level LEVEL        simd or relaxed: takes that build of kvlens instead of the best that runs
  --json FILE          writes the rows`;

function list(text, allowed, name) {
  const items = text.split(',');
  for (const item of items.filter((item) => !allowed(item)))
    throw new Error(`${name} has "${item}"`);
  return items;
}

/** Throws an Error with a message for the user. */
export function parseOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      runtimes: { type: 'string', default: runtimes.join(',') },
      threads: { type: 'string', default: '1,2' },
      repetitions: { type: 'string' },
      weights: { type: 'string', default: 'q8_0' },
      quick: { type: 'boolean', default: false },
      scaling: { type: 'boolean', default: false },
      level: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const isCount = (text) => /^[1-9]\d?$/.test(text);
  return {
    ...values,
    runtimes: list(values.runtimes, (name) => runtimes.includes(name), '--runtimes'),
    threads: list(values.threads, isCount, '--threads').map(Number),
    repetitions: Number(
      list(values.repetitions ?? (values.quick ? '2' : '4'), isCount, '--repetitions')[0],
    ),
    level:
      values.level &&
      list(values.level, (name) => ['simd', 'relaxed'].includes(name), '--level')[0],
    weights: list(values.weights, (name) => ['q8_0', 'q4_0'].includes(name), '--weights')[0],
  };
}
