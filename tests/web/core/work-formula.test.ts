// The formula for work that was not done gives what the core counts when it is done.
import { expect, test } from 'vitest';
import { computedReplayWork, loadCore } from 'kvlens/core';
import { randomModel, richConfig, smallConfig } from '../../support/kvlens.js';

test('computedReplayWork is the counted work of a replay, but for the bytes', async () => {
  const core = await loadCore();
  // richConfig has a sliding window of 7, grouped heads and its own vocabulary head.
  for (const config of [smallConfig, richConfig]) {
    const model = randomModel(core, config);
    const session = core.createSession(model);
    for (const length of [1, 2, 6, 7, 8, 15]) {
      const tokens = Array.from({ length }, (_, i) => i % model.config.vocabSize);
      const { work } = session.replay({ tokens });
      expect(computedReplayWork(model.config, length)).toEqual({
        ...work,
        kvBytesRead: 0,
        kvBytesWritten: 0,
      });
    }
    session.dispose();
    model.dispose();
  }
  core.dispose();
});
