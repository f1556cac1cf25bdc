// One number for the bits of every storage type: in every build, on every number of threads, in
// chunks of every size, in every engine (Firefox: tests/web/package). The numbers are kvlens's own:
// a change of numerics has to change them here, where it is seen. What they are worth, golden
// figures say elsewhere.
import { describe, expect, test } from 'vitest';
import { loadCore } from 'kvlens/core';
import { bitHash, builds, coreOf, logitsHashes, sampledTokens } from '../../support/bits.js';
import { modelFromFiles } from '../../support/checkpoint-model.js';
import { expectedBits } from '../../support/expected-bits.js';
import { fixtureBytes } from '../../support/fixtures.js';

describe.each(builds)('build $variant on $threads threads', (build) => {
  test('gives the stored bits for every storage type', async () => {
    const core = await coreOf(build);
    if (core === undefined)
      return void console.log(`| ${build.variant} | does not run in this engine |`);
    expect(logitsHashes(core)).toEqual(expectedBits.storageTypes);
    expect(sampledTokens(core)).toEqual(expectedBits.sampledTokens);
    core.dispose();
  });
});

test.each(['f32', 'f16', 'q8_0', 'q4_0'] as const)(
  'the greedy run of stories260K %s has the stored bits',
  async (type) => {
    const core = await loadCore();
    const model = await modelFromFiles(
      core,
      await fixtureBytes(`stories260k/stories260K-${type}.gguf`),
    );
    const session = core.createSession(model);
    let { logits } = session.prefill([1, 403, 407, 261, 378]);
    const all = [logits];
    while (all.length < 100) {
      ({ logits } = session.decode(logits.indexOf(Math.max(...logits))));
      all.push(logits);
    }
    expect(bitHash(...all)).toBe(expectedBits.stories260K[type]);
    core.dispose();
  },
);
