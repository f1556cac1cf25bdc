// The worker's life: what starts it, what ends it, and what is pending then.
import { describe, expect, test } from 'vitest';
import { createEngine, type Engine } from 'kvlens';
import { rejection, smallConfig } from '../../support/kvlens.js';

/** An engine whose worker can be ended from outside. */
async function engineWithWorker(): Promise<{ engine: Engine; kill: () => void }> {
  if (typeof Worker === 'undefined') {
    const { Worker: ThreadWorker } = await import('node:worker_threads');
    const worker = new ThreadWorker(new URL('../../../dist/worker.js', import.meta.url));
    return {
      engine: await createEngine({ threads: 1, createWorker: () => worker as never }),
      kill: () => void worker.terminate(),
    };
  }
  const worker = new Worker(new URL('../../../dist/worker.js', import.meta.url), {
    type: 'module',
  });
  const engine = await createEngine({ threads: 1, createWorker: () => worker });
  // A worker that is terminated says nothing; one that throws outside of a call does.
  return {
    engine,
    kill: () => worker.dispatchEvent(new ErrorEvent('error', { message: 'out of memory' })),
  };
}

describe('the end of a worker', () => {
  test('rejects everything pending and every later call; a new engine works', async () => {
    const { engine, kill } = await engineWithWorker();
    const model = await engine.randomModel(
      { ...smallConfig, nLayers: 24, dModel: 64, dFf: 256, maxSeqLen: 4096 },
      { seed: 1 },
    );
    const [session, other] = [
      await model.createSession({ chunkRows: 1 }),
      await model.createSession({ chunkRows: 1 }),
    ];
    const pending = [
      session.prefill(Array(4000).fill(1)),
      other.generate({ tokens: Array(4000).fill(2) }).result,
    ].map((promise) => rejection('worker_died', promise));
    kill();
    await Promise.all(pending);
    await engine.ended;
    expect((await rejection('worker_died', session.state())).message).toMatch(
      /^the engine's worker has ended: /,
    );
    await engine.dispose();

    const next = await createEngine({ threads: 1 });
    expect((await next.randomModel(smallConfig, { seed: 1 })).config.nLayers).toBe(2);
    await next.dispose();
  });

  test('dispose rejects what is pending, and can be called again', async () => {
    const engine = await createEngine({ threads: 1 });
    const model = await engine.randomModel(smallConfig, { seed: 1 });
    const pending = rejection('disposed', model.hash());
    await engine.dispose();
    await pending;
    await engine.ended;
    await engine.dispose();
    await rejection('disposed', engine.memory());
  });

  test('an engine that cannot start says why', async () => {
    await rejection('module_load_failed', createEngine({ threads: 1, wasm: new Uint8Array(8) }));
    await rejection('invalid_argument', createEngine({ threads: 0 }));
  });
});

test('threads: what was chosen and why', async () => {
  const engine = await createEngine();
  const { threads, variant, why } = engine.info;
  expect(threads > 1).toBe(variant.endsWith('-mt'));
  expect(why.length).toBeGreaterThan(1);
  const model = await engine.randomModel(smallConfig, { seed: 9 });
  const session = await model.createSession();
  await session.prefill([1, 2, 3]);
  expect((await session.verify()).bytesEqual).toBe(true);
  await engine.dispose();
});
