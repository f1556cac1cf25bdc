// Generation as a stream: text, reuse of the cache, stops, and aborts that leave no trace.
import type { CallProgress } from 'kvlens';
import { expect, test } from 'vitest';
import { WorkerModel } from '../../../dist/engine/worker/worker-model.js';
import { WorkerSession } from '../../../dist/engine/worker/worker-session.js';
import { collect, snapshot, useStories } from '../../support/engine.js';
import { fixtureJson } from '../../support/fixtures.js';
import { randomModel, rejection, sharedCore, smallConfig } from '../../support/kvlens.js';

interface Runs {
  readonly runs: {
    readonly prompt: string;
    readonly prompt_ids: number[];
    readonly greedy_ids: number[];
    readonly greedy_text_100: string;
  }[];
}

const stories = useStories();

test("streams run.c's text", () =>
  stories.withSession(async (session) => {
    const { runs } = await fixtureJson<Runs>('stories260k/expected_greedy.json');
    const { prompt, prompt_ids, greedy_ids, greedy_text_100 } = runs[0]!;
    const stream = session.generate({
      prompt,
      maxNewTokens: 100,
      logprobs: 2,
      capture: 'attention',
      layers: [0],
    });
    const tokens = await collect(stream);
    const result = await stream.result;
    expect(tokens.map(({ token }) => token)).toEqual(greedy_ids.slice(0, 100));
    expect(tokens.map(({ text }) => text).join('')).toBe(greedy_text_100);
    expect(result).toMatchObject({
      text: greedy_text_100,
      stop: 'token_limit',
      promptTokens: prompt_ids.length,
      reusedTokens: 0,
      kvLen: prompt_ids.length + 99,
    });
    expect(result.work).toEqual(await session.work());
    tokens.forEach(({ position, kvLen, step, evidence, logprob, topTokens, token }, i) => {
      expect([position, kvLen]).toEqual([prompt_ids.length + i, prompt_ids.length + i]);
      expect(step.phase).toBe(i === 0 ? 'prefill' : 'decode');
      expect(evidence!.attention.shape).toEqual([1, 8, 1, kvLen]);
      expect(topTokens![0]).toMatchObject({ token });
      expect(logprob).toBeCloseTo(topTokens![0]!.logprob, 12);
    });
    expect((await session.verify()).bytesEqual).toBe(true);
    expect((await session.contrast()).avoidedScoreValues).toBeGreaterThan(0);
  }));

test('only the new suffix of a prompt is prefilled, after a comparison of tokens', () =>
  stories.withSession(async (session) => {
    const first = await session.generate({ tokens: [1, 403, 407, 261, 378], maxNewTokens: 10 })
      .result;
    const held = await session.cache.tokens();
    expect(held).toHaveLength(14);
    const prompt = [...held, first.tokens.at(-1)!, 421, 300];
    const hashes = await session.cache.contentHashes();
    const second = await session.generate({ tokens: prompt, maxNewTokens: 5 }).result;
    expect(second).toMatchObject({ reusedTokens: 14, promptTokens: 17 });
    expect(second.work.tokenForwards).toBe(3 + 4);
    expect(await session.cache.contentHashes(14)).toEqual(hashes);
    const fresh = await stories.withSession(
      (other) => other.generate({ tokens: prompt, maxNewTokens: 5 }).result,
    );
    expect(second.tokens).toEqual(fresh.tokens);
    // A prompt that parts from what is held: the rest is dropped.
    const parted = [...prompt.slice(0, 6), 300, 301];
    const third = await session.generate({ tokens: parted, maxNewTokens: 5 }).result;
    expect(third).toMatchObject({ reusedTokens: 6 });
    expect(third.tokens).toEqual(
      (
        await stories.withSession(
          (other) => other.generate({ tokens: parted, maxNewTokens: 5 }).result,
        )
      ).tokens,
    );
    expect((await session.verify()).bytesEqual).toBe(true);
    // The very prompt that is held, and one that shares nothing.
    await session.truncate(8);
    expect(await session.generate({ tokens: parted, maxNewTokens: 1 }).result).toMatchObject({
      reusedTokens: 7,
      kvLen: 8,
    });
    expect(await session.generate({ tokens: parted, maxNewTokens: 1 }).result).toMatchObject({
      reusedTokens: 8,
      work: { tokenForwards: 0 },
    });
    expect(await session.generate({ tokens: [5, 6], maxNewTokens: 1 }).result).toMatchObject({
      reusedTokens: 0,
      kvLen: 2,
    });
    expect((await session.verify()).bytesEqual).toBe(true);
  }));

test('an abort leaves the session as it was, and the result says so', () =>
  stories.withSession(async (session) => {
    await session.generate({
      prompt: 'Once upon a time',
      maxNewTokens: 20,
      capture: 'all',
      layers: [1, 2],
    }).result;
    const { kvLen, tokens: held } = await session.state();
    const before = await snapshot(session);
    for (const tokens of [
      [...held, 300, 301],
      [1, 403, 5, 6],
      [9, 9, 9],
    ]) {
      const controller = new AbortController();
      const stream = session.generate({
        tokens,
        maxNewTokens: 400,
        eosTokens: [],
        signal: controller.signal,
        capture: 'all',
      });
      let n = 0;
      for await (const _ of stream) if (++n === 3) controller.abort();
      expect(await stream.result).toMatchObject({
        stop: 'aborted',
        tokens: new Uint32Array(),
        kvLen,
      });
      expect(n).toBeLessThan(400);
      expect(await snapshot(session)).toEqual(before);
    }
    // Leaving the loop is an abort, seen before the loop's next statement.
    for await (const _ of session.generate({ tokens: [1, 5], maxNewTokens: 400, eosTokens: [] }))
      break;
    expect(await snapshot(session)).toEqual(before);
    // A failure under way, too.
    await rejection('token_out_of_range', session.generate({ tokens: [1, 403, 9999] }).result);
    await rejection(
      'cache_full',
      session.generate({ tokens: [...held, ...Array(600).fill(3)] }).result,
    );
    await rejection('invalid_sampling', session.generate({ tokens: [1], temperature: -1 }).result);
    expect(await snapshot(session)).toEqual(before);
  }));

test('in the worker an abort is seen before the next decode, and before the next chunk of a prompt', async () => {
  const core = await sharedCore();
  const toy = randomModel(core, { ...smallConfig, maxSeqLen: 64 });
  const session = core.createSession(toy, { chunkRows: 4 });
  const made = {
    name: 'toy',
    format: 'random',
    architecture: 'llama',
    loadMilliseconds: 0,
  } as const;
  const target = new WorkerSession(core, session, new WorkerModel(toy, made));
  const tokens = Uint32Array.from({ length: 20 }, (_, i) => i % 11);
  for (const last of [1, 3]) {
    const controller = new AbortController();
    let n = 0;
    const onToken = (): void => {
      if (++n === last) controller.abort();
    };
    const call = { signal: controller.signal, onToken };
    const result = await target.generate(call, { tokens, maxNewTokens: 40 });
    expect([result.stop, n, session.kvLen]).toEqual(['aborted', last, 0]);
  }
  const controller = new AbortController();
  const rows: number[] = [];
  const onProgress = ({ done }: CallProgress) => {
    rows.push(done);
    if (done === 8) controller.abort();
  };
  const call = { signal: controller.signal, onProgress };
  await rejection('aborted', target.prefill(call, tokens));
  expect([rows, session.kvLen, session.callInProgress]).toEqual([[4, 8], 0, false]);
  session.dispose();
  toy.dispose();
});

test('stop strings are left out of the text, wherever the pieces break', () =>
  stories.withSession(async (session) => {
    const plain = await session.generate({ prompt: 'Once upon a time', maxNewTokens: 60 }).result;
    for (const stop of ['Lily', 'named Lily. She', 'y.', ' park']) {
      await session.reset();
      const stream = session.generate({
        prompt: 'Once upon a time',
        maxNewTokens: 60,
        stop: [stop, 'never'],
      });
      const tokens = await collect(stream);
      const result = await stream.result;
      expect(result.stop).toBe('stop_string');
      expect(result.text).toBe(plain.text.slice(0, plain.text.indexOf(stop)));
      expect(tokens.map(({ text }) => text).join('')).toBe(result.text);
    }
    await session.reset();
    expect(
      (
        await session.generate({
          prompt: 'Once upon a time',
          maxNewTokens: 60,
          stop: ['Lilz', 'Lily w'],
        }).result
      ).text,
    ).toBe(plain.text);
  }));

test('the same seed gives the same tokens; limits and stops in their order', () =>
  stories.withSession(async (session) => {
    const request = {
      prompt: 'Once',
      maxNewTokens: 30,
      temperature: 0.9,
      topK: 40,
      topP: 0.95,
      minP: 0.01,
      repetitionPenalty: 1.1,
      seed: 42,
    };
    const a = await session.generate(request).result;
    await session.reset();
    const b = await session.generate(request).result;
    expect(b.tokens).toEqual(a.tokens);
    expect(b.rngState).toBe(a.rngState);
    await session.reset();
    const c = await session.generate({ ...request, seed: 43n }).result;
    expect(c.tokens).not.toEqual(a.tokens);
    await session.reset();
    const eos = await session.generate({
      prompt: 'Once upon a time',
      maxNewTokens: 3,
      eosTokens: [286],
    }).result;
    expect(eos).toMatchObject({ stop: 'eos', tokens: Uint32Array.of(432, 383, 286) });
    expect(await session.generate({ tokens: [1], maxNewTokens: 0 }).result).toMatchObject({
      stop: 'token_limit',
      work: { tokenForwards: 0 },
    });
  }));

test('the capacity ends it', () =>
  stories.withSession(
    async (session) => {
      const result = await session.generate({
        tokens: [1, 403, 407],
        maxNewTokens: 100,
        eosTokens: [],
      }).result;
      expect(result).toMatchObject({ stop: 'context_limit', kvLen: 8 });
      expect(result.tokens).toHaveLength(6);
    },
    { capacity: 8 },
  ));

test('what is asked for must make sense', () =>
  stories.withSession(async (session) => {
    for (const request of [
      {},
      { prompt: 'a', tokens: [1] },
      { prompt: 1 },
      { tokens: [1], stop: [''] },
      { tokens: [1], maxNewTokens: -1 },
      { tokens: [1], seed: 0.5 },
      { tokens: [1], capture: 'some' },
      { tokens: [1], topK: NaN },
    ]) {
      await rejection('invalid_argument', session.generate(request as never).result);
    }
    await rejection('empty_prompt', session.generate({ tokens: [] }).result);
    await rejection(
      'no_chat_template',
      session.generate({ messages: [{ role: 'user', content: 'Hi' }] }).result,
    );
    // Read as a stream, it throws.
    await rejection('empty_prompt', collect(session.generate({ tokens: [] })));
    expect(await session.cache.len()).toBe(0);
  }));
