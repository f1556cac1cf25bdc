// Keys and values kept as bfloat16: half the bytes, the compute type's values rounded to nearest, and all that
// holds of a cache holds of it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCore, type Core, type Model } from 'kvlens/core';
import { failure, randomModel, richConfig, sameBytes } from '../../support/kvlens.js';

let core: Core;
let model: Model;
beforeAll(async () => {
  core = await loadCore();
  model = randomModel(core, richConfig, 8n);
});
afterAll(() => {
  model.dispose();
  expect(core.memory()).toMatchObject({ liveHandles: 0, liveBuffers: 0, liveBytes: 0 });
  core.dispose();
});

const tokens = Uint32Array.from({ length: 21 }, (_, i) => (7 * i) % 50);

/** To the nearest number whose last 16 bits are zero, of two the one with an even 17th bit. */
function rounded(values: Float32Array): Float32Array {
  return values.map((value) => {
    const bits = new Uint32Array(Float32Array.of(value).buffer);
    const low = bits[0]! % 65536;
    bits[0]! -= low;
    if (low > 32768 || (low === 32768 && (bits[0]! / 65536) % 2 === 1)) bits[0]! += 65536;
    return new Float32Array(bits.buffer)[0]!;
  });
}

test('the first layer holds the rounded rows of a cache that rounds nothing, in half the bytes', () => {
  const exact = core.createCache(model);
  const halved = core.createCache(model, { kvDtype: 'bf16' });
  expect([exact.kvDtype, halved.kvDtype]).toEqual(['f32', 'bf16']);
  expect(halved.bytes * 2).toBe(exact.bytes);
  const sessions = [exact, halved].map((cache) => core.bind(model, cache));
  const [a, b] = sessions.map((session) => session.prefill(tokens));
  expect(b!.work.kvBytesRead * 2).toBe(a!.work.kvBytesRead);
  expect(b!.work.kvBytesWritten * 2).toBe(a!.work.kvBytesWritten);
  const [from, to] = [exact.layer(0), halved.layer(0)];
  expect(sameBytes(to.keys(), rounded(from.keys()))).toBe(true);
  expect(sameBytes(to.values(), rounded(from.values()))).toBe(true);
  expect(sameBytes(to.keys(), from.keys())).toBe(false);
  for (let head = 0; head < model.config.nKvHeads; ++head) {
    expect(sameBytes(to.keyRow(head, 20), rounded(from.keyRow(head, 20)))).toBe(true);
    expect(sameBytes(to.values(head), rounded(from.values(head)))).toBe(true);
  }
  expect(to.contentHash()).not.toBe(from.contentHash());
  for (const handle of [...sessions, exact, halved]) handle.dispose();
});

test('cached logits are the bits of a replay, whatever the chunks, and of a session that was cut back', () => {
  const logits = [1, 8, 64].map((chunkRows) => {
    const session = core.createSession(model, { kvDtype: 'bf16', chunkRows });
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

test('only what goes with the compute type is taken', () => {
  const { context, message } = failure('invalid_argument', () => core.createCache(model, { compute: 'f64', kvDtype: 'bf16' }));
  expect(context).toEqual({ field: 'kv_dtype', value: 'bf16', allowed: 'f64' });
  expect(message).toBe('kv_dtype is bf16, must be f64 where f64 is computed');
  failure('invalid_argument', () => core.createCache(model, { kvDtype: 'q8_0' as never }));
  failure('invalid_argument', () => core.createCache(model, { kvDtype: 'half' as never }));
  const double = core.createCache(model, { compute: 'f64' });
  expect(double.kvDtype).toBe('f64');
  double.dispose();
});
