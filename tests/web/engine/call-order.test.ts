// The calls of one session run in the order made, awaited or not.
import type { EngineSession } from 'kvlens';
import { expect, test } from 'vitest';
import { collect, snapshot, useStories } from '../../support/engine.js';
import { rejection } from '../../support/kvlens.js';

const stories = useStories();

const prompt = [1, 403, 407, 261, 378];
const chunks = { chunkRows: 1 };

/** Code and outcome of each of several calls. */
const outcomes = (calls: readonly Promise<unknown>[]): Promise<string[]> =>
  Promise.all(
    calls.map((call) =>
      call.then(
        () => 'done',
        (error: { code: string }) => error.code,
      ),
    ),
  );

test('an extend and a decode made at once both run, on each of 40 fresh sessions', async () => {
  const expected = await stories.withSession(async (session) => {
    await session.prefill(prompt);
    await session.extend([5, 6, 7]);
    await session.decode(8);
    return snapshot(session);
  }, chunks);
  const untimed = (value: unknown): string =>
    JSON.stringify(value, (key, part: unknown) => (key === 'milliseconds' ? undefined : part));
  for (let i = 0; i < 40; ++i) {
    await stories.withSession(async (session) => {
      void session.prefill(prompt);
      const [extended, decoded] = await Promise.all([session.extend([5, 6, 7]), session.decode(8)]);
      expect([extended.kvLen, decoded.kvLen]).toEqual([8, 9]);
      expect(untimed(await snapshot(session))).toBe(untimed(expected));
    }, chunks);
  }
});

test('calls of every kind wait for those before them', () =>
  stories.withSession(async (session) => {
    const order: string[] = [];
    const noted = async <T>(name: string, call: Promise<T>): Promise<T> => {
      const value = await call;
      order.push(name);
      return value;
    };
    const [, , top, , work] = await Promise.all([
      noted('prefill', session.prefill(prompt)),
      noted('decode', session.decode(7)),
      noted('topTokens', session.topTokens(1)),
      noted('verify', session.verify()),
      noted('work', session.work()),
      noted('truncate', session.truncate(5)),
      noted('extend', session.extend([7, 8])),
      noted('sample', session.sample({})),
      noted('reset', session.reset()),
    ]);
    expect(order).toEqual([
      'prefill',
      'decode',
      'topTokens',
      'verify',
      'work',
      'truncate',
      'extend',
      'sample',
      'reset',
    ]);
    expect(top).toHaveLength(1);
    expect(work).toMatchObject({ prefillTokens: 5, decodeTokens: 1 });
    expect(await session.cache.len()).toBe(0);
  }, chunks));

test('a generation and then a decode: the decode goes onto the generated rows', () =>
  stories.withSession(async (session) => {
    const stream = session.generate({ tokens: prompt, maxNewTokens: 4, eosTokens: [] });
    const decoded = session.decode(9);
    expect(await collect(stream)).toHaveLength(4);
    expect((await stream.result).kvLen).toBe(8);
    // The last generated token is chosen and not decoded.
    expect(await decoded).toMatchObject({ kvLenBefore: 8, kvLen: 9 });
    expect((await session.verify()).bytesEqual).toBe(true);
  }));

test('state and the cache answer at once, from the rows that are committed', () =>
  stories.withSession(async (session) => {
    await session.prefill([1]);
    let seen: Promise<unknown[]> | undefined;
    const long = session.extend(Array(100).fill(5), {
      onProgress: () => {
        seen ??= Promise.all([session.state(), session.cache.len()]);
      },
    });
    await long;
    expect(await seen).toMatchObject([{ kvLen: 1, callInProgress: true }, 1]);
    expect(await session.state()).toMatchObject({ kvLen: 101, callInProgress: false });
  }, chunks));

test('a call that fails does not keep the next ones from running', () =>
  stories.withSession(async (session) => {
    const calls = [
      session.decode(1),
      session.prefill([9999]),
      session.prefill(prompt),
      session.prefill(prompt),
      session.decode(3),
    ];
    expect(await outcomes(calls)).toEqual([
      'not_prefilled',
      'token_out_of_range',
      'done',
      'not_empty',
      'done',
    ]);
    expect(await session.cache.tokens()).toEqual(Uint32Array.of(...prompt, 3));
  }, chunks));

test('a call that waits can be aborted: it rejects at once and never runs', () =>
  stories.withSession(async (session) => {
    const controller = new AbortController();
    const { signal } = controller;
    let ended = false;
    const long = session.prefill(Array(200).fill(5)).finally(() => (ended = true));
    const waiting = [
      session.decode(7, { signal }),
      session.extend([7, 8], { signal, topTokens: 3 }),
      session.verify({ signal }),
    ];
    const stream = session.generate({ tokens: [1, 2], signal });
    const last = session.decode(9);
    controller.abort(new Error('not wanted'));
    for (const call of waiting) {
      expect((await rejection('aborted', call)).cause).toEqual(new Error('not wanted'));
    }
    expect(await stream.result).toMatchObject({ stop: 'aborted', tokens: new Uint32Array() });
    expect(ended).toBe(false);
    await long;
    expect((await last).kvLen).toBe(201);
    expect(await session.work()).toMatchObject({ prefillTokens: 200, decodeTokens: 1 });
  }, chunks));

test('the running call can be aborted, and the one that waits runs on what was there before', () =>
  stories.withSession(async (session) => {
    await session.prefill(prompt);
    const controller = new AbortController();
    const long = session.extend(Array(200).fill(5), {
      signal: controller.signal,
      onProgress: ({ done }) => {
        if (done === 3) controller.abort();
      },
    });
    const next = session.decode(9);
    await rejection('aborted', long);
    expect(await next).toMatchObject({ kvLenBefore: 5, kvLen: 6 });
    expect((await session.verify()).bytesEqual).toBe(true);
  }, chunks));

test('dispose rejects the call that runs and those that wait with disposed', async () => {
  const session = await stories.model.createSession(chunks);
  const calls = [
    session.prefill(Array(400).fill(5)),
    session.decode(1),
    session.generate({ tokens: [1] }).result,
    session.state().then(() => session.decode(1)),
  ];
  const settled = outcomes(calls);
  await session.dispose();
  expect(await settled).toEqual(['disposed', 'disposed', 'disposed', 'disposed']);
  await rejection('disposed', session.decode(1));
  await session.dispose();
  expect((await stories.engine.memory()).liveHandles).toBe(1);
});

test('a signal that is aborted before the call has the effect of one aborted later', () =>
  stories.withSession(async (session) => {
    await session.prefill(prompt);
    const before = await snapshot(session);
    const reason = new Error('already');
    const signal = AbortSignal.abort(reason);
    const refused: ((session: EngineSession) => Promise<unknown>)[] = [
      (each) => each.decode(1, { signal }),
      (each) => each.extend([1, 2], { signal }),
      (each) => each.replay({ signal }),
      (each) => each.verify({ signal }),
      (each) => each.contrast({ signal }),
      (each) => each.attentionMaps([0], { signal }),
    ];
    for (const call of refused) {
      expect((await rejection('aborted', call(session))).cause).toBe(reason);
    }
    const stream = session.generate({ prompt: 'Once upon a time', signal });
    expect(await collect(session.generate({ tokens: [1, 2], signal }))).toEqual([]);
    expect(await stream.result).toMatchObject({
      stop: 'aborted',
      tokens: new Uint32Array(),
      text: '',
      promptTokens: 5,
      kvLen: 5,
    });
    expect(await snapshot(session)).toEqual(before);
  }));
