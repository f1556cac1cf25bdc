// Keys and values kept in fewer bits: rounded where a row is written, in the bytes that a format
// takes, and all that holds of a cache holds of it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadCore, type Core, type Model } from 'kvlens/core';
import { failure, randomModel, richConfig, sameBytes, smallConfig } from '../../support/kvlens.js';

let core: Core;
let model: Model;
beforeAll(async () => {
  core = await loadCore();
  model = randomModel(core, { ...richConfig, headDim: 64, rope: { theta: 5000 } }, 8n);
});
afterAll(() => {
  model.dispose();
  expect(core.memory()).toMatchObject({ liveHandles: 0, liveBuffers: 0, liveBytes: 0 });
  core.dispose();
});

const tokens = Uint32Array.from({ length: 21 }, (_, i) => (7 * i) % 50);

/** To the nearest number whose last 16 bits are zero, of two the one with an even 17th bit. */
function toBFloat16(values: Float32Array): Float32Array {
  return values.map((value) => {
    const bits = new Uint32Array(Float32Array.of(value).buffer);
    const low = bits[0]! % 65536;
    bits[0]! -= low;
    if (low > 32768 || (low === 32768 && (bits[0]! / 65536) % 2 === 1)) bits[0]! += 65536;
    return new Float32Array(bits.buffer)[0]!;
  });
}

/**
 * Of every 32 values: multiples of the least half that is not below their largest magnitude / 127.
 */
function toQ8(values: Float32Array): Float32Array {
  return values.map((value, i) => {
    const block = values.subarray(i - (i % 32), i - (i % 32) + 32);
    const least = Math.fround(
      block.reduce((largest, each) => Math.max(largest, Math.abs(each)), 0) / 127,
    );
    // A half has 11 bits, the last of which is never below 2^-24.
    const step = 2 ** Math.max(-24, Math.floor(Math.log2(least)) - 10);
    const scale = Math.ceil(least / step) * step;
    return Math.fround((Math.round(value / scale) + 0) * scale); // an integer has no -0
  });
}

describe.each([
  { kvDtype: 'bf16', rounded: toBFloat16, share: 1 / 2 },
  { kvDtype: 'q8_0', rounded: toQ8, share: 34 / 128 },
] as const)('$kvDtype', ({ kvDtype, rounded, share }) => {
  test('the first layer holds the rounded rows of a cache that rounds nothing, in fewer bytes', () => {
    const exact = core.createCache(model);
    const fewer = core.createCache(model, { kvDtype });
    expect([exact.kvDtype, fewer.kvDtype]).toEqual(['f32', kvDtype]);
    expect(fewer.bytes).toBe(exact.bytes * share);
    const sessions = [exact, fewer].map((cache) => core.bind(model, cache));
    const [a, b] = sessions.map((session) => session.prefill(tokens));
    expect(b!.work.kvBytesRead).toBe(a!.work.kvBytesRead * share);
    expect(b!.work.kvBytesWritten).toBe(a!.work.kvBytesWritten * share);
    const [from, to] = [exact.layer(0), fewer.layer(0)];
    expect(sameBytes(to.keys(), rounded(from.keys()))).toBe(true);
    expect(sameBytes(to.values(), rounded(from.values()))).toBe(true);
    expect(sameBytes(to.keys(), from.keys())).toBe(false);
    for (let head = 0; head < model.config.nKvHeads; ++head) {
      expect(sameBytes(to.keyRow(head, 20), rounded(from.keyRow(head, 20)))).toBe(true);
      expect(sameBytes(to.values(head), rounded(from.values(head)))).toBe(true);
    }
    expect(to.contentHash()).not.toBe(from.contentHash());
    for (const handle of [...sessions, exact, fewer]) handle.dispose();
  });

  test('cached logits are the bits of a replay, whatever the chunks, and of a session that was cut back', () => {
    const logits = [1, 8, 64].map((chunkRows) => {
      const session = core.createSession(model, { kvDtype, chunkRows });
      session.prefill(tokens.subarray(0, 9));
      session.extend(tokens.subarray(9, 20));
      session.truncate(15);
      session.extend(tokens.subarray(15, 20));
      const step = session.decode(tokens[20]!, { capture: 'attention' });
      expect(sameBytes(step.logits, session.replay().logits.data)).toBe(true);
      session.dispose();
      return step.logits;
    });
    for (const other of logits) expect(sameBytes(other, logits[0]!)).toBe(true);
  });
});

test('only what goes with the compute type and the size of heads is taken', () => {
  const { context, message } = failure('invalid_argument', () =>
    core.createCache(model, { compute: 'f64', kvDtype: 'bf16' }),
  );
  expect(context).toEqual({ field: 'kv_dtype', value: 'bf16', allowed: 'f64' });
  expect(message).toBe('kv_dtype is bf16, must be f64 where f64 is computed');
  failure('invalid_argument', () => core.createCache(model, { kvDtype: 'q4_0' as never }));
  failure('invalid_argument', () => core.createCache(model, { kvDtype: 'half' as never }));
  const small = randomModel(core, smallConfig);
  const refused = failure('invalid_argument', () => core.createCache(small, { kvDtype: 'q8_0' }));
  expect(refused.message).toBe(
    'kv_dtype is q8_0, must be f32 or bf16 where f32 is computed and head_dim is 4',
  );
  small.dispose();
  const double = core.createCache(model, { compute: 'f64' });
  expect(double.kvDtype).toBe('f64');
  double.dispose();
});
