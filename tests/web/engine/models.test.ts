// A model in the worker: its description, its tokenizer and its parameters.
import { expect, test } from 'vitest';
import { useStories } from '../../support/engine.js';
import { rejection, smallConfig } from '../../support/kvlens.js';

const stories = useStories();

test('what is known of a model', () => {
  expect(stories.model.info).toMatchObject({
    name: 'stories260K',
    format: 'gguf',
    architecture: 'llama',
    parameterBytes: 1040128,
    nParameters: 260032,
    dtypes: [['f32', 36]],
  });
  expect(stories.model.info.hash).toMatch(/^[0-9a-f]{16}$/);
  expect(stories.model.config).toMatchObject({
    nLayers: 5,
    nHeads: 8,
    nKvHeads: 4,
    headDim: 8,
    dModel: 64,
    vocabSize: 512,
    maxSeqLen: 512,
  });
  expect(stories.model.tokenizer).toMatchObject({
    vocabSize: 512,
    bosToken: 1,
    hasChatTemplate: false,
  });
});

test('text to ids and back', async () => {
  const ids = await stories.model.tokenize('Once upon a time');
  expect(ids).toEqual(Uint32Array.of(1, 403, 407, 261, 378));
  expect(await stories.model.tokenize('Once', { addSpecial: false })).toEqual(Uint32Array.of(403));
  expect(await stories.model.detokenize(ids)).toBe('Once upon a time');
  expect(await stories.model.pieces([1, 403, 13])).toEqual(['<s>', ' Once', '<0x0A>']);
  await rejection(
    'no_chat_template',
    stories.model.applyChatTemplate([{ role: 'user', content: 'Hi' }]),
  );
  await rejection('token_out_of_range', stories.model.detokenize([512]));
});

test('parameters can be read, and updated only while no session is alive', async () => {
  const random = await stories.engine.randomModel(smallConfig, { seed: 7 });
  const cache = await random.createCache({ compute: 'f64' });
  const session = await random.bind(cache);
  const update = { name: 'final_norm', dtype: 'f32', data: new Float32Array(8).fill(3) } as const;
  expect((await rejection('parameter_borrowed', random.updateParameter(update))).context).toEqual({
    count: 1,
  });
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
