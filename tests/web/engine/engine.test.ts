// The worker engine: the same figures as the core, over promises and streams.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createEngine,
  isKvLensError,
  type CallProgress,
  type Engine,
  type EngineModel,
  type EngineSession,
  type GeneratedToken,
  type LongCallOptions,
  type Step,
} from 'kvlens';
import { generate, tokenRequest } from '../../../dist/engine/worker/generation.js';
import { loadWeights } from '../../../dist/engine/worker/load-weights.js';
import { WorkerSession } from '../../../dist/engine/worker/worker-session.js';
import { fixtureFiles } from '../../support/checkpoint-model.js';
import { fixtureBytes, fixtureJson, fixtureUrl } from '../../support/fixtures.js';
import { smallGguf, writeGguf } from '../../support/gguf-writer.js';
import {
  randomModel,
  rejection,
  sameBytes,
  sharedCore,
  smallConfig,
} from '../../support/kvlens.js';

let engine: Engine;
let model: EngineModel;
beforeAll(async () => {
  engine = await createEngine({ threads: 1 });
  model = await engine.loadModel(await fixtureFiles('stories260k/stories260K-f32.gguf'));
});
afterAll(async () => {
  await model.dispose();
  expect(await engine.memory()).toMatchObject({ liveHandles: 0, liveBuffers: 0, liveBytes: 0 });
  await engine.dispose();
});

async function withSession<T>(
  run: (session: EngineSession) => Promise<T>,
  options = {},
): Promise<T> {
  const session = await model.createSession(options);
  try {
    return await run(session);
  } finally {
    await session.dispose();
  }
}

async function collect(stream: AsyncIterable<GeneratedToken>): Promise<GeneratedToken[]> {
  const tokens: GeneratedToken[] = [];
  for await (const token of stream) tokens.push(token);
  return tokens;
}

interface Runs {
  readonly runs: {
    readonly prompt: string;
    readonly prompt_ids: number[];
    readonly greedy_ids: number[];
    readonly greedy_text_100: string;
  }[];
}

describe('models', () => {
  test('what is known of a model', () => {
    expect(model.info).toMatchObject({
      name: 'stories260K',
      format: 'gguf',
      architecture: 'llama',
      parameterBytes: 1040128,
      nParameters: 260032,
      dtypes: [['f32', 36]],
    });
    expect(model.info.hash).toMatch(/^[0-9a-f]{16}$/);
    expect(model.config).toMatchObject({
      nLayers: 5,
      nHeads: 8,
      nKvHeads: 4,
      headDim: 8,
      dModel: 64,
      vocabSize: 512,
      maxSeqLen: 512,
    });
    expect(model.tokenizer).toMatchObject({ vocabSize: 512, bosToken: 1, hasChatTemplate: false });
  });

  test('text to ids and back', async () => {
    const ids = await model.tokenize('Once upon a time');
    expect(ids).toEqual(Uint32Array.of(1, 403, 407, 261, 378));
    expect(await model.tokenize('Once', { addSpecial: false })).toEqual(Uint32Array.of(403));
    expect(await model.detokenize(ids)).toBe('Once upon a time');
    expect(await model.pieces([1, 403, 13])).toEqual(['<s>', ' Once', '<0x0A>']);
    await rejection('no_chat_template', model.applyChatTemplate([{ role: 'user', content: 'Hi' }]));
    await rejection('token_out_of_range', model.detokenize([512]));
  });

  test('the same weights from any kind of source have the same hash', async () => {
    const bytes = await fixtureBytes('stories260k/stories260K-f32.gguf');
    for (const source of [
      bytes,
      bytes.buffer,
      new Blob([bytes]),
      new File([bytes], 'a.gguf'),
      [new File([bytes], 'a.gguf')],
    ]) {
      const other = await engine.loadModel(source);
      expect(other.info.hash).toBe(model.info.hash);
      await other.dispose();
    }
  });

  test('progress goes up to the whole, from open to ready', async () => {
    const seen: string[] = [];
    let bytes = 0;
    let total = 0;
    const other = await engine.loadModel(await fixtureFiles('stories260k/stories260K-q8_0.gguf'), {
      onProgress(progress) {
        seen.push(progress.stage);
        if (progress.stage === 'load') {
          expect(progress.bytes).toBeGreaterThanOrEqual(bytes);
          bytes = progress.bytes;
          total = progress.total;
        }
      },
    });
    expect(seen[0]).toBe('open');
    expect(seen.at(-1)).toBe('ready');
    expect([bytes, total]).toEqual([other.info.parameterBytes, other.info.parameterBytes]);
    await other.dispose();
  });

  test('an aborted load leaves nothing', async () => {
    const before = await engine.memory();
    const controller = new AbortController();
    const loading = engine.loadModel(await fixtureFiles('stories260k/stories260K-f32.gguf'), {
      signal: controller.signal,
      onProgress: ({ stage, bytes }) => {
        if (stage === 'load' && bytes > 200_000) controller.abort(new Error('enough'));
      },
    });
    expect((await rejection('aborted', loading)).cause).toEqual(new Error('enough'));
    await rejection(
      'aborted',
      engine.loadModel(new Uint8Array(9), { signal: AbortSignal.abort() }),
    );
    expect(await engine.memory()).toMatchObject({ ...before, heapBytes: expect.any(Number) });
  });

  test("an error of the caller's own callback ends the call", async () => {
    const loading = engine.loadModel(await fixtureFiles('stories260k/stories260K-f32.gguf'), {
      onProgress() {
        throw new Error('mine');
      },
    });
    await expect(loading).rejects.toThrow('mine');
    expect(await model.hash()).toBe(model.info.hash);
  });

  test('a file that is none is refused, and the engine goes on', async () => {
    await rejection(
      'unsupported_file',
      engine.loadModel(new TextEncoder().encode('hello, not a model')),
    );
    await rejection('invalid_argument', engine.loadModel(null as never));
    const bytes = await fixtureBytes('stories260k/stories260K-f32.gguf');
    await rejection('truncated_file', engine.loadModel(bytes.slice(0, 500_000)));
    expect(await model.hash()).toBe(model.info.hash);
  });

  test('damaged files load or are refused with a typed error, and leave nothing', async () => {
    const small = smallGguf();
    const whole = writeGguf({
      entries: [...small.entries],
      tensors: [...small.tensors.values()].map((tensor) => {
        const values = tensor.dims.reduce<number>((product, dim) => product * Number(dim), 1);
        return { ...tensor, data: new Uint8Array(new Float32Array(values).fill(0.5).buffer) };
      }),
    });
    const before = await engine.memory();
    const outcomes = new Map<string, number>();
    for (let i = 0; i < 400; ++i) {
      const bytes = whole.slice();
      // Evenly over header and weights, where all ones are a NaN.
      const at = Math.floor((i * (bytes.length - 4)) / 400);
      bytes.fill(i % 2 === 0 ? 0xff : i % 251, at, at + 4);
      const outcome = await engine.loadModel(bytes).then(
        async (loaded) => (await loaded.dispose(), 'loaded'),
        (error: unknown) => {
          if (!isKvLensError(error)) throw error;
          return error.code;
        },
      );
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      expect(await engine.memory()).toMatchObject({ ...before, heapBytes: expect.any(Number) });
    }
    console.log(
      `| damaged files | ${[...outcomes].map(([outcome, n]) => `${outcome}: ${n}`).join(', ')} |`,
    );
    for (const outcome of ['loaded', 'invalid_file', 'truncated_file', 'non_finite_parameter']) {
      expect(outcomes.get(outcome), outcome).toBeGreaterThan(0);
    }
    for (const outcome of outcomes.keys())
      expect(outcome).not.toMatch(/module_aborted|worker_died|internal/);
    expect(await model.hash()).toBe(model.info.hash);
  });

  test('an address is loaded; where there is a private file system, its download is kept', async () => {
    const address = fixtureUrl('stories260k/stories260K-f32.gguf');
    const plain = await engine.loadModel(address);
    expect(plain.info.hash).toBe(model.info.hash);
    await plain.dispose();
    const cached = new URL(`?${Date.now()}`, address);
    if (globalThis.navigator?.storage?.getDirectory === undefined) {
      await rejection('cache_unavailable', engine.loadModel(cached, { cache: true }));
      return;
    }
    for (const downloads of [true, false]) {
      let most = 0;
      const other = await engine.loadModel(cached, {
        cache: true,
        onProgress: ({ stage, bytes }) => {
          if (stage === 'open') most = Math.max(most, bytes);
        },
      });
      expect(most > 0).toBe(downloads);
      expect(other.info.hash).toBe(model.info.hash);
      await other.dispose();
    }
  });

  test("a model beyond the module's memory is refused before a byte of it is read", async () => {
    const core = await sharedCore();
    const checkpoint = { totalBytes: 5e9, config: smallConfig, tensors: [] } as never;
    const { context } = await rejection(
      'model_too_large',
      loadWeights(core, checkpoint, new AbortController().signal, () => {}),
    );
    expect(context.value).toBe(5e9);
    expect(context.limit).toBeLessThan(2 ** 32);
  });

  test('parameters can be read, and updated only while no session is alive', async () => {
    const random = await engine.randomModel(smallConfig, { seed: 7 });
    const cache = await random.createCache({ compute: 'f64' });
    const session = await random.bind(cache);
    const update = { name: 'final_norm', dtype: 'f32', data: new Float32Array(8).fill(3) } as const;
    expect((await rejection('parameter_borrowed', random.updateParameter(update))).context).toEqual(
      { count: 1 },
    );
    await rejection('model_in_use', random.dispose());
    await rejection('cache_in_use', cache.dispose());
    await session.dispose();
    await random.updateParameter(update);
    expect([...(await random.readRows('final_norm', 0, 1))]).toEqual(Array(8).fill(3));
    expect(await random.hash()).not.toBe(random.info.hash);
    expect((await random.parameters()).find(({ name }) => name === 'final_norm')).toMatchObject({
      revision: 1,
    });
    expect(
      (await rejection('parameter_revision_mismatch', random.bind(cache))).context,
    ).toMatchObject({ captured: 0, current: 1 });
    await rejection(
      'non_finite_parameter',
      random.updateParameter({ ...update, data: new Float32Array(8).fill(NaN) }),
    );
    await rejection('no_tokenizer', random.tokenize('a'));
    await cache.dispose();
    await random.dispose();
    await rejection('disposed', random.hash());
  });
});

describe('calls', () => {
  test('a cache in bfloat16 is verified like any other', async () => {
    const session = await model.createSession({ capacity: 32, kvDtype: 'bf16' });
    const whole = await model.createCache({ capacity: 32 });
    expect([session.cache.kvDtype, whole.kvDtype]).toEqual(['bf16', 'f32']);
    expect(session.cache.bytes * 2).toBe(whole.bytes);
    await session.prefill(await model.tokenize('Once upon a time'));
    await session.decode(7);
    expect(await session.verify()).toMatchObject({ bytesEqual: true, nTokens: 6 });
    await rejection('invalid_argument', model.createSession({ compute: 'f64', kvDtype: 'bf16' }));
    await whole.dispose();
    await session.dispose();
  });

  test('prefill, decode, rows, hashes, top tokens, verify, contrast', () =>
    withSession(
      async (session) => {
        const prompt = await model.tokenize('Once upon a time');
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
        // What was sent is the page's; the session keeps its own.
        for (let look = 0; look < 2; ++look)
          expect(await session.evidence()).toEqual(decoded.evidence);
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

  test.each(['f32', 'f64'] as const)(
    'the last evidence is kept, whatever was kept before: %s',
    async (compute) => {
      const session = await model.createSession({ capacity: 64, compute });
      await session.prefill([1, 403]);
      const layers = [1, 2, 3];
      for (const options of [
        { capture: 'attention' },
        { capture: 'all', layers },
        { capture: 'attention', layers },
        { capture: 'all' },
      ] as const) {
        for (let i = 0; i < 9; ++i) {
          const { evidence } = await session.decode(7, options);
          expect(await session.evidence()).toEqual(evidence);
        }
        const { evidence } = await session.extend([5, 6, 7], options);
        expect(await session.evidence()).toEqual(evidence);
      }
      await session.dispose();
    },
  );

  test('refused operations change nothing', () =>
    withSession(async (session) => {
      await rejection('not_prefilled', session.decode(1));
      await session.prefill([1, 403]);
      const before = {
        hashes: await session.cache.contentHashes(),
        state: await session.state(),
        logits: await session.logits(),
      };
      await rejection('not_empty', session.prefill([1]));
      await rejection('token_out_of_range', session.decode(512));
      await rejection('prompt_exceeds_capacity', session.replay({ tokens: Array(600).fill(1) }));
      await rejection('cache_full', session.extend(Array(511).fill(1)));
      await rejection('invalid_argument', session.decode('1' as never));
      await rejection('invalid_argument', session.extend([1.5]));
      expect({
        hashes: await session.cache.contentHashes(),
        state: await session.state(),
        logits: await session.logits(),
      }).toEqual(before);
    }));

  test('one call at a time; an abort is seen between chunks and leaves no trace', () =>
    withSession(
      async (session) => {
        await session.prefill([1]);
        const before = {
          hashes: await session.cache.contentHashes(),
          state: await session.state(),
        };
        const controller = new AbortController();
        const seen: number[] = [];
        const long = session.extend(Array(400).fill(5), {
          signal: controller.signal,
          onProgress({ done }) {
            seen.push(done);
            if (done === 16) controller.abort(new Error('stop'));
          },
        });
        await rejection('call_in_progress', session.decode(1));
        expect((await rejection('aborted', long)).cause).toEqual(new Error('stop'));
        expect(seen.at(-1)).toBeLessThanOrEqual(20);
        expect({
          hashes: await session.cache.contentHashes(),
          state: await session.state(),
        }).toEqual(before);
        await rejection('aborted', session.decode(1, { signal: AbortSignal.abort() }));
        expect((await session.decode(1)).kvLen).toBe(2);
      },
      { chunkRows: 4 },
    ));

  test('several sessions of several models take turns', async () => {
    const other = await engine.loadModel(await fixtureFiles('stories260k/stories260K-q8_0.gguf'));
    const sessions = [
      await model.createSession(),
      await other.createSession(),
      await model.createSession({ compute: 'f64' }),
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
});

describe('replays in steps', () => {
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
    withSession(
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
          hashes: await session.cache.contentHashes(),
          logits: await session.logits(),
          state: await session.state(),
          memory: { ...(await engine.memory()), heapBytes: 0 },
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
        await rejection('call_in_progress', session.decode(1));
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
      withSession(async (other) => {
        let prefilled: Promise<Step> | undefined;
        const { bytesEqual } = await session.verify({
          onProgress: () => void (prefilled ??= other.prefill(prompt)),
        });
        expect(bytesEqual).toBe(true);
        expect((await prefilled!).kvLen).toBe(43);
      }),
    ));

  test('a session that is disposed of meanwhile ends its replay', async () => {
    const session = await model.createSession({ chunkRows: 1 });
    await session.prefill(prompt);
    await rejection('disposed', session.verify({ onProgress: () => void session.dispose() }));
  });
});

describe('generation', () => {
  test("streams run.c's text", () =>
    withSession(async (session) => {
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
      expect(await session.evidence()).toEqual(tokens.at(-1)!.evidence);
      expect((await session.verify()).bytesEqual).toBe(true);
      expect((await session.contrast()).avoidedScoreValues).toBeGreaterThan(0);
    }));

  test('only the new suffix of a prompt is prefilled, after a comparison of tokens', () =>
    withSession(async (session) => {
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
      const fresh = await withSession(
        (other) => other.generate({ tokens: prompt, maxNewTokens: 5 }).result,
      );
      expect(second.tokens).toEqual(fresh.tokens);
      // A prompt that parts from what is held: the rest is dropped.
      const parted = [...prompt.slice(0, 6), 300, 301];
      const third = await session.generate({ tokens: parted, maxNewTokens: 5 }).result;
      expect(third).toMatchObject({ reusedTokens: 6 });
      expect(third.tokens).toEqual(
        (await withSession((other) => other.generate({ tokens: parted, maxNewTokens: 5 }).result))
          .tokens,
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
    withSession(async (session) => {
      await session.generate({
        prompt: 'Once upon a time',
        maxNewTokens: 20,
        capture: 'all',
        layers: [1, 2],
      }).result;
      const everything = async () => ({
        hashes: await session.cache.contentHashes(),
        state: await session.state(),
        logits: await session.logits(),
        evidence: await session.evidence(),
        contrast: await session.contrast(),
      });
      const before = await everything();
      for (const tokens of [
        [...before.state.tokens, 300, 301],
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
          kvLen: before.state.kvLen,
        });
        expect(n).toBeLessThan(400);
        expect(await everything()).toEqual(before);
      }
      // Leaving the loop is an abort, seen before the loop's next statement.
      for await (const _ of session.generate({ tokens: [1, 5], maxNewTokens: 400, eosTokens: [] }))
        break;
      expect(await everything()).toEqual(before);
      // A failure under way, too.
      await rejection('token_out_of_range', session.generate({ tokens: [1, 403, 9999] }).result);
      await rejection(
        'cache_full',
        session.generate({ tokens: [...before.state.tokens, ...Array(600).fill(3)] }).result,
      );
      await rejection(
        'invalid_sampling',
        session.generate({ tokens: [1], temperature: -1 }).result,
      );
      expect(await everything()).toEqual(before);
    }));

  test('in the worker an abort is seen before the next decode, and before the next chunk of a prompt', async () => {
    const core = await sharedCore();
    const toy = randomModel(core, { ...smallConfig, maxSeqLen: 64 });
    const session = core.createSession(toy, { chunkRows: 4 });
    const target = new WorkerSession(core, session);
    const tokens = Uint32Array.from({ length: 20 }, (_, i) => i % 11);
    for (const last of [1, 3]) {
      const controller = new AbortController();
      let n = 0;
      const request = tokenRequest({ maxNewTokens: 40 }, tokens, undefined);
      const result = await generate(
        target,
        request,
        undefined,
        { signal: controller.signal },
        () => {
          if (++n === last) controller.abort();
        },
      );
      expect([result.stop, n, session.kvLen]).toEqual(['aborted', last, 0]);
    }
    const controller = new AbortController();
    const rows: number[] = [];
    const onProgress = ({ done }: CallProgress) => {
      rows.push(done);
      if (done === 8) controller.abort();
    };
    await rejection(
      'aborted',
      target.forward('prefill', tokens, {}, { signal: controller.signal, onProgress }),
    );
    expect([rows, session.kvLen, session.callInProgress]).toEqual([[4, 8], 0, false]);
    session.dispose();
    toy.dispose();
  });

  test('stop strings are left out of the text, wherever the pieces break', () =>
    withSession(async (session) => {
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
    withSession(async (session) => {
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
    withSession(
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
    withSession(async (session) => {
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
});
