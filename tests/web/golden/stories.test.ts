// stories260K, a real trained model: run.c's greedy ids and texts from every file of it.
import { beforeAll, describe, expect, test } from 'vitest';
import type { Core } from 'kvlens/core';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import type { TokenizerData } from '../../../web/src/text/tokenizer-data.js';
import { createTokenizer } from '../../../web/src/text/tokenizer.js';
import { fixtureFiles, modelFromCheckpoint } from '../../support/checkpoint-model.js';
import { fixtureJson } from '../../support/fixtures.js';
import {
  checkTypes,
  typesTable,
  type TypesGolden,
  type TypesResult,
} from '../../support/golden-cases.js';
import { sharedCore } from '../../support/kvlens.js';

interface Runs {
  readonly runs: {
    readonly prompt: string;
    readonly prompt_ids: number[];
    readonly greedy_ids: number[];
    readonly greedy_text_100: string;
  }[];
}

const folder = 'stories260k';
/** BOS, which this model emits where a story ends. */
const endOfStory = 1;

let core: Core;
let golden: Runs;
beforeAll(async () => {
  core = await sharedCore();
  golden = await fixtureJson<Runs>(`${folder}/expected_greedy.json`);
});

describe.each([
  ['.bin', ['stories260K.bin', 'tok512.bin']],
  ['GGUF v1', ['tinyllamas-stories-260k-f32.ggufv1.gguf']],
  ['f32', ['stories260K-f32.gguf']],
  ['f16', ['stories260K-f16.gguf']],
  ['q8_0', ['stories260K-q8_0.gguf']],
])('%s', (_, names) => {
  test('the first 100 greedy ids and their text, for all prompts', async () => {
    const checkpoint = await openCheckpoint(
      await fixtureFiles(...names.map((name) => `${folder}/${name}`)),
    );
    const tokenizer = createTokenizer(checkpoint.tokenizer as TokenizerData);
    const model = await modelFromCheckpoint(core, checkpoint);
    const session = core.createSession(model);
    for (const { prompt, prompt_ids, greedy_ids, greedy_text_100 } of golden.runs) {
      expect([...tokenizer.encode(prompt)]).toEqual(prompt_ids);
      session.reset();
      const { tokens } = session.generate({ prompt: prompt_ids, maxNewTokens: 100 });
      expect([...tokens]).toEqual(greedy_ids.slice(0, 100));
      const decoder = tokenizer.decoder(prompt_ids);
      expect([...tokens].map((id) => decoder.push(id)).join('') + decoder.end()).toBe(
        greedy_text_100,
      );
      expect(session.verify().bytesEqual).toBe(true);
    }
    session.dispose();
    model.dispose();
  });
});

test('the whole story in f32, to the token that ends it', async () => {
  const checkpoint = await openCheckpoint(await fixtureFiles(`${folder}/stories260K-f32.gguf`));
  const model = await modelFromCheckpoint(core, checkpoint);
  const session = core.createSession(model);
  for (const { prompt_ids, greedy_ids } of golden.runs) {
    session.reset();
    const { tokens, stop } = session.generate({
      prompt: prompt_ids,
      maxNewTokens: 500,
      eosToken: endOfStory,
    });
    expect([...tokens]).toEqual(greedy_ids);
    expect(stop).toBe('eos');
  }
  session.dispose();
  model.dispose();
});

test('every storage type against float64: argmax at every position', async () => {
  const types = await fixtureJson<TypesGolden>(`${folder}/stories260K-types.json`);
  const results: [string, TypesResult][] = [];
  for (const type of Object.keys(types.types)) {
    const result = await checkTypes(
      core,
      await fixtureFiles(`${folder}/stories260K-${type}.gguf`),
      types,
      type,
    );
    results.push([type, result]);
    expect(result.nearTies).toEqual([]);
    expect(result.error.f64).toBeLessThan(1e-5);
    if (type === 'f32' || type === 'f16') expect(result.error.f32).toBeLessThan(5e-5);
  }
  console.log(typesTable('stories260K', results));
});
