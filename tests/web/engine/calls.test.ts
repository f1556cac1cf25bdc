// The calls of a session in the worker give the figures of the core.
import { expect, test } from 'vitest';
import { fixtureFiles } from '../../support/checkpoint-model.js';
import { snapshot, useStories } from '../../support/engine.js';
import { rejection, sameBytes } from '../../support/kvlens.js';

const stories = useStories();

test('a cache in bfloat16 is verified like any other', async () => {
  const session = await stories.model.createSession({ capacity: 32, kvDtype: 'bf16' });
  const whole = await stories.model.createCache({ capacity: 32 });
  expect([session.cache.kvDtype, whole.kvDtype]).toEqual(['bf16', 'f32']);
  expect(session.cache.bytes * 2).toBe(whole.bytes);
  await session.prefill(await stories.model.tokenize('Once upon a time'));
  await session.decode(7);
  expect(await session.verify()).toMatchObject({ bytesEqual: true, nTokens: 6 });
  await rejection(
    'invalid_argument',
    stories.model.createSession({ compute: 'f64', kvDtype: 'bf16' }),
  );
  await whole.dispose();
  await session.dispose();
});

test('prefill, decode, rows, hashes, top tokens, verify, contrast', () =>
  stories.withSession(
    async (session) => {
      const prompt = await stories.model.tokenize('Once upon a time');
      const done: number[] = [];
      const step = await session.prefill(prompt, {
        capture: 'attention',
        layers: [0, 4],
        onProgress: (p) => done.push(p.done),
      });
      expect(done).toEqual([2, 4, 5]);
      expect(step).toMatchObject({
        phase: 'prefill',
        position: 4,
        kvLenBefore: 0,
        kvLen: 5,
        rowsAppended: [5, 5, 5, 5, 5],
      });
      expect(step.logits).toHaveLength(512);
      expect(step.evidence!.attention.shape).toEqual([2, 8, 5, 5]);
      const hashes = await session.cache.contentHashes();
      const [best] = await session.topTokens(3);
      const { draw, rngState } = await session.sample({}, 5n);
      expect(draw.token).toBe(best!.token);
      expect(rngState).toBe(5n);
      expect(best!.probability).toBeCloseTo(Math.exp(best!.logprob), 12);
      const decoded = await session.decode(best!.token, { capture: 'attention' });
      expect(decoded.evidence!.attention.shape).toEqual([5, 8, 1, 6]);
      expect(await session.cache.contentHashes(5)).toEqual(hashes);
      expect(await session.cache.prefixHashes([5, 6])).toEqual([
        hashes,
        await session.cache.contentHashes(),
      ]);
      const row = await session.cache.row(1, 3, 5);
      const { keys } = await session.cache.layer(1);
      expect(keys.shape).toEqual([4, 6, 8]);
      expect(sameBytes(keys.data.slice((3 * 6 + 5) * 8, (3 * 6 + 6) * 8), row.key)).toBe(true);
      const verification = await session.verify();
      expect(verification).toMatchObject({
        bytesEqual: true,
        maxAbsDifference: 0,
        nTokens: 6,
        cached: { phase: 'decode', position: 5 },
      });
      const maps = await session.attentionMaps([2]);
      expect(maps.shape).toEqual([1, 8, 6, 6]);
      const contrast = await session.contrast();
      expect(contrast).toMatchObject({
        cachedScoreValues: 5 * 8 * (15 + 6),
        replayScoreValues: 5 * 8 * (25 + 36),
      });
      expect(await session.state()).toMatchObject({
        kvLen: 6,
        hasLogits: true,
        callInProgress: false,
        work: await session.work(),
      });
      const { logits } = await session.decode(3, { logits: false });
      expect(logits).toHaveLength(0);
      expect(await session.logits()).toEqual((await session.replay()).logits.data);
      await session.truncate(5);
      await rejection('no_logits', session.logits());
      await session.reset();
      expect(await session.cache.len()).toBe(0);
    },
    { chunkRows: 2 },
  ));

test('refused operations change nothing', () =>
  stories.withSession(async (session) => {
    await rejection('not_prefilled', session.decode(1));
    await session.prefill([1, 403]);
    const before = await snapshot(session);
    await rejection('not_empty', session.prefill([1]));
    await rejection('token_out_of_range', session.decode(512));
    await rejection('prompt_exceeds_capacity', session.replay({ tokens: Array(600).fill(1) }));
    await rejection('cache_full', session.extend(Array(511).fill(1)));
    await rejection('invalid_argument', session.decode('1' as never));
    await rejection('invalid_argument', session.extend([1.5]));
    expect(await snapshot(session)).toEqual(before);
  }));

test('an abort is seen between chunks and leaves no trace', () =>
  stories.withSession(
    async (session) => {
      await session.prefill([1]);
      const before = await snapshot(session);
      const controller = new AbortController();
      const seen: number[] = [];
      const long = session.extend(Array(400).fill(5), {
        signal: controller.signal,
        onProgress({ done }) {
          seen.push(done);
          if (done === 16) controller.abort(new Error('stop'));
        },
      });
      expect((await rejection('aborted', long)).cause).toEqual(new Error('stop'));
      expect(seen.at(-1)).toBeLessThanOrEqual(20);
      expect(await snapshot(session)).toEqual(before);
      await rejection('aborted', session.decode(1, { signal: AbortSignal.abort() }));
      expect((await session.decode(1)).kvLen).toBe(2);
    },
    { chunkRows: 4 },
  ));

test('several sessions of several models take turns', async () => {
  const other = await stories.engine.loadModel(
    await fixtureFiles('stories260k/stories260K-q8_0.gguf'),
  );
  const sessions = [
    await stories.model.createSession(),
    await other.createSession(),
    await stories.model.createSession({ compute: 'f64' }),
  ];
  const results = await Promise.all(
    sessions.map(
      (session) => session.generate({ prompt: 'Once upon a time', maxNewTokens: 40 }).result,
    ),
  );
  expect(results[1]!.tokens).toEqual(results[0]!.tokens);
  expect(results[2]!.tokens).toEqual(results[0]!.tokens);
  for (const session of sessions) await session.dispose();
  await other.dispose();
});
