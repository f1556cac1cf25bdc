// The float64 reference: four small decoders, every call, every generation, every counter.
import { beforeAll, describe, expect, test } from 'vitest';
import type { Core } from 'kvlens/core';
import { courseConfig, courseModel, type CourseCase } from '../../support/course.js';
import { fixtureJson } from '../../support/fixtures.js';
import { maxDifference, sameBytes, sharedCore } from '../../support/kvlens.js';

const tolerance = 2e-12;

let core: Core;
beforeAll(async () => {
  core = await sharedCore();
});

describe.each(['fixture-2x2x4', 'one-token-1x1x2', 'small-3x4x16', 'wide-4x8x32'])('%s', (name) => {
  let course: CourseCase;
  beforeAll(async () => {
    course = await fixtureJson<CourseCase>(`course/${name}.json`);
  });

  test("the random decoder of the seed has the fixture's parameters and leaves its state", () => {
    const rng = { state: BigInt(course.seed) };
    const random = core.randomModel(courseConfig(course), { rng, dtype: 'f64' });
    const given = courseModel(core, course);
    expect(rng.state).toBe(BigInt(course.rng_state_after_init));
    expect(random.hash).toBe(given.hash);
    random.dispose();
    given.dispose();
  });

  test("prefill and decode give its logits, rows, attention and work, and the replay's bytes", () => {
    const model = courseModel(core, course);
    const session = core.createSession(model, { compute: 'f64' });
    const prefix: number[] = [];
    for (const expected of course.steps) {
      prefix.push(...expected.tokens);
      const capture = { capture: 'attention', rows: 'last' } as const;
      const step =
        expected.call === 'prefill'
          ? session.prefill(expected.tokens, capture)
          : session.decode(expected.tokens[0]!, capture);
      expect(step.phase).toBe(expected.call);
      expect(step.position).toBe(expected.position);
      expect(step.kvLenBefore).toBe(expected.cache_len - expected.tokens.length);
      expect(step.kvLen).toBe(expected.cache_len);
      expect(step.rowsAppended).toEqual(Array(model.config.nLayers).fill(expected.tokens.length));
      expect(step.rowAttentionScoreValues).toBe(expected.row_attention_score_values);
      expect(maxDifference(step.logits, expected.logits)).toBeLessThanOrEqual(tolerance);

      const { attention } = step.evidence!;
      expect(attention.shape).toEqual([
        model.config.nLayers,
        model.config.nHeads,
        1,
        expected.cache_len,
      ]);
      expect(
        maxDifference(attention.data, expected.attention_last_row.flat(2)),
      ).toBeLessThanOrEqual(tolerance);
      expected.layers.forEach(({ keys, values }, layer) => {
        expect(maxDifference(session.cache.layer(layer).keys(), keys)).toBeLessThanOrEqual(
          tolerance,
        );
        expect(maxDifference(session.cache.layer(layer).values(), values)).toBeLessThanOrEqual(
          tolerance,
        );
      });

      expect(session.work()).toMatchObject({
        tokenForwards: expected.work.token_forwards,
        prefillTokens: expected.work.prefill_tokens,
        decodeTokens: expected.work.decode_tokens,
        cacheAppends: expected.work.cache_appends,
        qkvProjectionRows: expected.work.qkv_projection_rows,
        attentionScoreValues: expected.work.attention_score_values,
      });
      const replay = session.replay();
      expect(replay.work.attentionScoreValues).toBe(
        expected.complete_prefix_attention_score_values,
      );
      expect(sameBytes(replay.logits.data, step.logits)).toBe(true);
      expect(
        maxDifference(replay.logits.data, expected.complete_prefix_last_logits),
      ).toBeLessThanOrEqual(tolerance);
      expect(session.verify()).toMatchObject({
        bytesEqual: true,
        maxAbsDifference: 0,
        nTokens: prefix.length,
      });
    }
    session.dispose();
    model.dispose();
  });

  test('its generations: tokens, stop, draws, random state, work', () => {
    const model = courseModel(core, course);
    const prompt = course.steps[0]!.tokens;
    for (const expected of course.generations) {
      const session = core.createSession(model, { compute: 'f64' });
      const rng = { state: BigInt(expected.rng_seed) };
      const { mode } = expected;
      const generation = session.generate({
        prompt,
        maxNewTokens: expected.max_new_tokens,
        sampling: mode.kind === 'greedy' ? {} : { temperature: mode.temperature, topK: mode.top_k },
        rng,
        ...(expected.eos_token !== null && { eosToken: expected.eos_token }),
      });
      expect([...generation.tokens]).toEqual(expected.generated);
      expect(generation.stop).toBe(expected.stop.replace('-', '_'));
      expect(rng.state).toBe(BigInt(expected.rng_state_after));
      expect(session.kvLen).toBe(expected.final_cache_len);
      generation.steps.forEach(({ prefixLength, draw }, i) => {
        const step = expected.steps[i]!;
        expect(prefixLength).toBe(step.prefix_length);
        expect(draw.token).toBe(step.token_id);
        expect(draw.unitDraw).toBe(step.unit_draw ?? undefined);
        expect(
          maxDifference(draw.interval, [step.interval_start, step.interval_end]),
        ).toBeLessThanOrEqual(tolerance);
      });
      expect(generation.work).toMatchObject({
        attentionScoreValues: expected.work.cached_attention_score_values,
        prefillTokens: expected.work.prefill_tokens,
        decodeTokens: expected.work.decode_tokens,
        cacheAppends: expected.work.cache_appends,
        qkvProjectionRows: expected.work.qkv_projection_rows,
      });
      session.dispose();
    }
    model.dispose();
  });

  test('without the cache every prefix of a generation is replayed whole', () => {
    const model = courseModel(core, course);
    const session = core.createSession(model, { compute: 'f64' });
    for (const expected of course.generations) {
      const tokens = [...course.steps[0]!.tokens, ...expected.generated];
      let scores = 0;
      for (const { prefix_length } of expected.steps) {
        const { work } = session.replay({ tokens: tokens.slice(0, prefix_length) });
        scores += work.attentionScoreValues;
      }
      expect(scores).toBe(expected.work.complete_prefix_attention_score_values);
    }
    session.dispose();
    model.dispose();
  });
});

test('2x2x4: cached 24 scores against 52 replayed, 28 avoided', async () => {
  const course = await fixtureJson<CourseCase>('course/fixture-2x2x4.json');
  const model = courseModel(core, course);
  const session = core.createSession(model, { compute: 'f64' });
  session.prefill([0, 1]);
  session.decode(2);
  expect(session.contrast()).toMatchObject({
    cachedScoreValues: 24,
    replayScoreValues: 52,
    avoidedScoreValues: 28,
  });
  session.dispose();
  model.dispose();
});
