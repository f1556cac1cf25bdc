// Replays run in steps: with progress, aborted half-way, and beside other sessions.
import type { CallProgress, EngineSession, LongCallOptions, Step } from 'kvlens';
import { expect, test } from 'vitest';
import { snapshot, useStories } from '../../support/engine.js';
import { rejection } from '../../support/kvlens.js';

const stories = useStories();

type LongCall = (session: EngineSession, options?: LongCallOptions) => Promise<unknown>;
const longCalls: Record<string, LongCall> = {
  replay: (session, options) => session.replay({ allLogits: true, ...options }),
  verify: (session, options) => session.verify(options),
  attentionMaps: (session, options) => session.attentionMaps([1, 3], options),
  contrast: (session, options) => session.contrast(options),
};
// 43 tokens of the prompt in chunks of 4, then two decodes.
const prompt = Array.from({ length: 43 }, (_, i) => (i * 11) % 512);
const total = { replay: 45, verify: 45, attentionMaps: 45, contrast: 43 + 44 + 45 };

const withRun = <T>(run: (session: EngineSession) => Promise<T>): Promise<T> =>
  stories.withSession(
    async (session) => {
      await session.prefill(prompt);
      await session.decode(5);
      await session.decode(6);
      return run(session);
    },
    { chunkRows: 4 },
  );

/** What a call gives, without the times that it took. */
const untimed = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, part: unknown) =>
      key === 'milliseconds'
        ? undefined
        : ArrayBuffer.isView(part)
          ? [...(part as Float32Array)]
          : part,
    ),
  );

test.each(Object.keys(longCalls) as (keyof typeof total)[])(
  '%s: progress never goes back and is complete',
  (name) =>
    withRun(async (session) => {
      const seen: CallProgress[] = [];
      const watched = await longCalls[name]!(session, {
        onProgress: (progress) => seen.push(progress),
      });
      expect(untimed(watched)).toEqual(untimed(await longCalls[name]!(session)));
      expect(new Set(seen.map((progress) => progress.total))).toEqual(new Set([total[name]]));
      expect(seen.length).toBeGreaterThan(30);
      expect(seen.length).toBeLessThan(310);
      const done = seen.map((progress) => progress.done);
      expect(done).toEqual([...new Set(done)].sort((a, b) => a - b));
      expect(done[0]).toBeGreaterThan(0);
      expect(done.at(-1)).toBe(total[name]);
    }),
);

test.each(Object.keys(longCalls) as (keyof typeof total)[])(
  '%s: stopped half-way, it is aborted and the session unchanged',
  (name) =>
    withRun(async (session) => {
      const state = async (): Promise<unknown> => ({
        session: await snapshot(session),
        memory: { ...(await stories.engine.memory()), heapBytes: 0 },
      });
      const before = await state();
      const controller = new AbortController();
      const seen: number[] = [];
      const stopped = longCalls[name]!(session, {
        signal: controller.signal,
        onProgress: ({ done, total }) => {
          seen.push(done / total);
          if (done >= total / 2) controller.abort(new Error('enough'));
        },
      });
      expect((await rejection('aborted', stopped)).cause).toEqual(new Error('enough'));
      // No step is computed, or told of, after the one that was stopped at.
      expect(seen.filter((part) => part >= 0.5)).toHaveLength(1);
      expect(seen.at(-1)).toBeLessThan(0.6);
      expect(await state()).toEqual(before);
      await rejection('aborted', longCalls[name]!(session, { signal: AbortSignal.abort() }));
      expect((await session.verify()).bytesEqual).toBe(true);
      expect(await state()).toEqual(before);
    }),
);

test('another session goes on while one replays', () =>
  withRun((session) =>
    stories.withSession(async (other) => {
      let prefilled: Promise<Step> | undefined;
      const { bytesEqual } = await session.verify({
        onProgress: () => void (prefilled ??= other.prefill(prompt)),
      });
      expect(bytesEqual).toBe(true);
      expect((await prefilled!).kvLen).toBe(43);
    }),
  ));

test('a session that is disposed of meanwhile ends its replay', async () => {
  const session = await stories.model.createSession({ chunkRows: 1 });
  await session.prefill(prompt);
  await rejection('disposed', session.verify({ onProgress: () => void session.dispose() }));
});
