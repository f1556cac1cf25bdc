// A step brings along what a page shows of it, so that one click is one message in each direction.
import { createEngine, type Engine, type EngineModel } from 'kvlens';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fixtureFiles } from '../../support/checkpoint-model.js';
import { collect, snapshot } from '../../support/engine.js';
import { rejection, smallConfig } from '../../support/kvlens.js';

/** Messages to the worker and from it, since the last `counted`. */
const messages = { sent: 0, received: 0 };

async function countedWorker(): Promise<Worker> {
  const received = (): void => void ++messages.received;
  let worker: Worker;
  if (typeof Worker === 'undefined') {
    const { Worker: ThreadWorker } = await import('node:worker_threads');
    const thread = new ThreadWorker(new URL('../../../dist/worker.js', import.meta.url));
    thread.on('message', received);
    worker = thread as never;
  } else {
    // Written so that Vite sees a worker's file, into which it puts nothing of the page's.
    worker = new Worker(new URL('../../../dist/worker.js', import.meta.url), { type: 'module' });
    worker.addEventListener('message', received);
  }
  const post = worker.postMessage.bind(worker) as (message: unknown) => void;
  worker.postMessage = (message: unknown) => {
    ++messages.sent;
    post(message);
  };
  return worker;
}

async function counted<T>(run: () => Promise<T>): Promise<[T, number, number]> {
  Object.assign(messages, { sent: 0, received: 0 });
  const value = await run();
  return [value, messages.sent, messages.received];
}

let engine: Engine;
let model: EngineModel;
beforeAll(async () => {
  const worker = await countedWorker();
  engine = await createEngine({ threads: 1, createWorker: () => worker });
  model = await engine.loadModel(await fixtureFiles('stories260k/stories260K-f32.gguf'));
});
afterAll(() => engine.dispose());

const prompt = [1, 403, 407, 261, 378];

test('a clicked token: step, evidence, hashes, candidates and pieces with one message each way', async () => {
  const session = await model.createSession();
  await session.prefill(prompt);
  const held = await session.cache.contentHashes();
  const [step, sent, received] = await counted(() =>
    session.decode(432, {
      capture: 'attention',
      topTokens: 12,
      prefixHashes: [5, 6],
      pieces: true,
    }),
  );
  expect([sent, received]).toEqual([1, 1]);
  expect(step.evidence!.attention.shape).toEqual([5, 8, 1, 6]);
  expect(step.prefixHashes).toEqual([held, await session.cache.contentHashes()]);
  const top = await session.topTokens(12);
  const pieces = await model.pieces(top.map(({ token }) => token));
  expect(step.topTokens).toEqual(top.map((each, i) => ({ ...each, piece: pieces[i] })));
  expect(step.pieces).toEqual(await model.pieces([432]));
  await session.dispose();
});

test('a step without reads has none, and costs one message each way', async () => {
  const session = await model.createSession();
  const [step, sent, received] = await counted(() => session.prefill(prompt));
  expect([sent, received]).toEqual([1, 1]);
  for (const name of ['topTokens', 'prefixHashes', 'pieces']) expect(step).not.toHaveProperty(name);
  await session.dispose();
});

test('prefill and extend read the same way, one piece for each of their tokens', async () => {
  const session = await model.createSession();
  const reads = { topTokens: 1, prefixHashes: [0, 2], pieces: true };
  const first = await session.prefill(prompt, reads);
  expect(first.pieces).toEqual(await model.pieces(prompt));
  expect(first.prefixHashes).toEqual(await session.cache.prefixHashes([0, 2]));
  const second = await session.extend([5, 6, 7], reads);
  expect(second.pieces).toHaveLength(3);
  expect(second.topTokens).toMatchObject(await session.topTokens(1));
  expect((await session.decode(7, { topTokens: 9999 })).topTokens).toHaveLength(512);
  await session.dispose();
});

test('a read that fails fails the whole call, which changes nothing', async () => {
  const session = await model.createSession({ chunkRows: 2 });
  await session.prefill(prompt);
  await session.decode(7);
  const before = await snapshot(session);
  await rejection('invalid_length', session.decode(1, { prefixHashes: [8] }));
  await rejection('invalid_length', session.extend([1, 2, 3], { prefixHashes: [10] }));
  await rejection('invalid_argument', session.decode(1, { topTokens: -1 }));
  await rejection('invalid_argument', session.decode(1, { topTokens: 1, prefixHashes: [0.5] }));
  expect(await snapshot(session)).toEqual(before);
  expect((await session.verify()).bytesEqual).toBe(true);
  await session.dispose();

  const untold = await engine.randomModel(smallConfig, { seed: 3 });
  const other = await untold.createSession();
  await rejection('no_tokenizer', other.prefill([1], { pieces: true }));
  await rejection('no_tokenizer', other.generate({ tokens: [1], pieces: true }).result);
  expect(await other.cache.len()).toBe(0);
  expect((await other.prefill([1], { topTokens: 2 })).topTokens).toHaveLength(2);
  await other.dispose();
  await untold.dispose();
});

test('a generation is one message to the worker; each token and the result are one back', async () => {
  const session = await model.createSession();
  const [tokens, sent, received] = await counted(() =>
    collect(
      session.generate({
        tokens: prompt,
        maxNewTokens: 8,
        eosTokens: [],
        logprobs: 3,
        pieces: true,
      }),
    ),
  );
  expect([sent, received]).toEqual([1, 9]);
  const ids = tokens.map(({ token }) => token);
  expect(tokens.map(({ piece }) => piece)).toEqual(await model.pieces(ids));
  for (const { topTokens } of tokens) {
    const pieces = await model.pieces(topTokens!.map(({ token }) => token));
    expect(topTokens!.map(({ piece }) => piece)).toEqual(pieces);
  }
  await session.dispose();
});

test('progress that somebody watches is answered, so that an abort arrives before the next step', async () => {
  const session = await model.createSession({ chunkRows: 1 });
  const [, sent, received] = await counted(() => session.prefill(prompt, { onProgress() {} }));
  expect([sent, received]).toEqual([1 + 5, 5 + 1]);
  await session.dispose();
});
