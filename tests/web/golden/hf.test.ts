// Hugging Face checkpoints of every architecture, in f32 and bf16, and their GGUF twins.
import { describe, test } from 'vitest';
import { fixtureFiles } from '../../support/checkpoint-model.js';
import { fixtureBytes, fixtureJson } from '../../support/fixtures.js';
import { checkHfCase, type HfGolden } from '../../support/golden-cases.js';
import { sharedCore } from '../../support/kvlens.js';

const architectures = [
  'llama-mha-tied',
  'llama-gqa-untied',
  'llama3-rope-scaled',
  'qwen2-bias',
  'qwen3-qknorm',
  'mistral-sliding',
];
const twins = ['llama-gqa-untied', 'llama3-rope-scaled', 'qwen2-bias', 'qwen3-qknorm'];

describe.each(architectures.flatMap((name) => [`${name}-f32`, `${name}-bf16`]))('%s', (name) => {
  test('logits, attention, greedy ids; cached as replayed', async () => {
    const golden = await fixtureJson<HfGolden>(`hf/${name}/golden.json`);
    const files = await fixtureFiles(`hf/${name}/config.json`, `hf/${name}/model.safetensors`);
    await checkHfCase(await sharedCore(), files, golden);
  });
});

describe.each(twins)('%s as GGUF', (name) => {
  test('logits, attention, greedy ids; cached as replayed', async () => {
    const golden = await fixtureJson<HfGolden>(`hf/${name}-f32/golden.json`);
    await checkHfCase(
      await sharedCore(),
      await fixtureBytes(`hf/${name}-f32/model-f32.gguf`),
      golden,
    );
  });
});
