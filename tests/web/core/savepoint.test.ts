// A rollback returns to a savepoint exactly; what a session keeps in JavaScript comes back too.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCore, type Core, type Model, type Session } from 'kvlens/core';
import { failure, randomModel, richConfig } from '../../support/kvlens.js';

let core: Core;
let model: Model;
beforeAll(async () => {
  core = await loadCore();
  model = randomModel(core, richConfig, 3n);
});
afterAll(() => {
  model.dispose();
  expect(core.memory()).toMatchObject({ liveHandles: 0, liveBuffers: 0, liveBytes: 0 });
  core.dispose();
});

/** Everything of a session that can be observed. */
function stateOf(session: Session): object {
  let schedule: unknown;
  try {
    schedule = session.schedule();
  } catch {
    schedule = undefined;
  }
  return {
    kvLen: session.kvLen,
    tokens: [...session.tokens()],
    work: session.work(),
    hasLogits: session.hasLogits,
    logits: session.hasLogits ? [...session.logits()] : undefined,
    hashes: session.cache.contentHashes(),
    lastStep: session.lastStep,
    callInProgress: session.callInProgress,
    schedule,
  };
}

const prompt = Array.from({ length: 20 }, (_, i) => (7 * i) % 50);

test.each(['f32', 'f64'] as const)('%s: whatever was called since is taken back', (compute) => {
  const session = core.createSession(model, { compute, chunkRows: 4 });
  const calls: [string, () => void][] = [
    ['prefill', () => session.prefill(prompt)],
    ['decode', () => session.decode(4)],
    ['extend', () => session.extend([5, 6, 7])],
    ['truncate and extend', () => (session.truncate(3), session.extend(prompt))],
    ['clear and prefill', () => (session.clear(), session.prefill([9, 8]))],
    [
      'reset and generate',
      () => {
        session.reset();
        session.generate({ prompt: [1, 2], maxNewTokens: 5 });
      },
    ],
    ['an open call', () => (session.begin('extend', [1, 2, 3, 4, 5]), session.advance())],
  ];
  // From an empty session, after a prefill and a decode, and after a truncate.
  for (const setUp of [
    () => {},
    () => (session.prefill(prompt), session.decode(1)),
    () => session.truncate(11),
  ]) {
    setUp();
    const before = stateOf(session);
    const savepoint = session.savepoint();
    expect(savepoint.session).toBe(session);
    for (const [name, call] of calls) {
      try {
        call();
      } catch {
        // For example a prefill of a filled cache. What follows must hold all the same.
      }
      session.rollback(savepoint);
      expect(stateOf(session), name).toEqual(before);
    }
    savepoint.dispose();
    expect(stateOf(session)).toEqual(before);
  }
  session.dispose();
});

test('a session that was rolled back is verified and contrasted as if nothing had happened', () => {
  const session = core.createSession(model);
  session.prefill(prompt);
  session.decode(1);
  const contrast = session.contrast();
  const savepoint = session.savepoint();
  session.clear();
  session.prefill([3, 2, 1]);
  session.rollback(savepoint);
  expect(session.verify()).toMatchObject({ bytesEqual: true, maxAbsDifference: 0 });
  expect(session.contrast()).toEqual(contrast);
  session.dispose();
});

test('a rollback ends later savepoints; another session’s and a disposed one are refused', () => {
  const session = core.createSession(model);
  const other = core.createSession(model);
  const first = session.savepoint();
  session.prefill([1, 2]);
  const second = session.savepoint();
  session.rollback(second);
  session.rollback(first);
  const before = stateOf(session);
  expect(failure('savepoint_ended', () => session.rollback(second)).context).toEqual({});
  failure('invalid_argument', () => other.rollback(first));
  failure('invalid_argument', () => session.rollback(undefined as never));
  session.begin('prefill', [1, 2, 3]);
  failure('call_in_progress', () => session.savepoint());
  session.abandon();
  second.dispose();
  failure('disposed', () => session.rollback(second));
  expect(stateOf(session)).toEqual(before);
  // `first` goes with its session.
  session.dispose();
  expect(first.disposed).toBe(true);
  other.dispose();
});

test('clear drops every row and goes on counting', () => {
  const session = core.createSession(model);
  session.prefill(prompt);
  const work = session.work();
  session.begin('extend', [1]);
  session.clear();
  expect(session).toMatchObject({
    kvLen: 0,
    hasLogits: false,
    lastStep: undefined,
    callInProgress: false,
  });
  expect(session.work()).toEqual(work);
  failure('no_schedule', () => session.schedule());
  const again = session.prefill(prompt);
  expect(session.work().prefillTokens).toBe(2 * again.work.prefillTokens);
  // The counters include the first prefill, so the calls are no schedule.
  failure('no_schedule', () => session.schedule());
  session.dispose();
});
