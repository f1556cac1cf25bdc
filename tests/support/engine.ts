/** What the engine's tests share: an engine with stories260K in it, and sessions of that model. */
import { afterAll, beforeAll, expect } from 'vitest';

import {
  createEngine,
  type Engine,
  type EngineCacheOptions,
  type EngineModel,
  type EngineSession,
  type EngineSessionOptions,
  type GeneratedToken,
} from 'kvlens';

import { fixtureFiles } from './checkpoint-model.js';

export class Stories {
  engine!: Engine;
  model!: EngineModel;

  /** Runs `run` with a session of its own. */
  async withSession<T>(
    run: (session: EngineSession) => Promise<T>,
    options: EngineCacheOptions & EngineSessionOptions = {},
  ): Promise<T> {
    const session = await this.model.createSession(options);
    try {
      return await run(session);
    } finally {
      await session.dispose();
    }
  }
}

/** Starts an engine before the tests of a file. After them, the model must be all that is left. */
export function useStories(): Stories {
  const stories = new Stories();
  beforeAll(async () => {
    stories.engine = await createEngine({ threads: 1 });
    const files = await fixtureFiles('stories260k/stories260K-f32.gguf');
    stories.model = await stories.engine.loadModel(files);
  });
  afterAll(async () => {
    const { engine, model } = stories;
    await model.dispose();
    expect(await engine.memory()).toMatchObject({ liveHandles: 0, liveBuffers: 0, liveBytes: 0 });
    await engine.dispose();
  });
  return stories;
}

/** Everything about a session that a call which changes nothing must leave as it is. */
export async function snapshot(session: EngineSession): Promise<unknown> {
  const state = await session.state();
  return {
    state,
    hashes: await session.cache.contentHashes(),
    logits: state.hasLogits && (await session.logits()),
    contrast: await session.contrast().catch((error: { code: string }) => error.code),
  };
}

export async function collect(stream: AsyncIterable<GeneratedToken>): Promise<GeneratedToken[]> {
  const tokens: GeneratedToken[] = [];
  for await (const token of stream) tokens.push(token);
  return tokens;
}
