// A real chat model answers a question, where `node tools/fetch-smollm2.mjs` has fetched it.
import { createEngine } from 'kvlens';
import { expect, test } from 'vitest';
import { smollm2Path } from '../../../tools/fetch-smollm2.mjs';

const path = smollm2Path();
if (path === undefined) console.log('SmolLM2 is skipped: node tools/fetch-smollm2.mjs fetches it');

test.skipIf(path === undefined)(
  'SmolLM2-135M-Instruct answers with its own tokenizer and chat template',
  async () => {
    const engine = await createEngine({ threads: 1 });
    const model = await engine.loadModel(path!);
    expect(model.tokenizer).toMatchObject({ vocabSize: 49152, hasChatTemplate: true });
    const session = await model.createSession({ capacity: 512 });
    const messages = [
      { role: 'user', content: 'What is the capital of France? Answer in one sentence.' },
    ];
    const first = await session.generate({ messages, maxNewTokens: 60 }).result;
    expect(first.text).toContain('Paris');
    expect(first.stop).toBe('eos');

    // The next turn prefills what is new: the first answer's end, the question, the beginning of an
    // answer.
    const next = [
      ...messages,
      { role: 'assistant', content: first.text },
      { role: 'user', content: 'And of Italy?' },
    ];
    const second = await session.generate({ messages: next, maxNewTokens: 60 }).result;
    expect(second.text.length).toBeGreaterThan(0);
    expect(second.reusedTokens).toBeGreaterThanOrEqual(
      first.promptTokens + first.tokens.length - 1,
    );
    const { bytesEqual, replay, cached } = await session.verify();
    expect(bytesEqual).toBe(true);
    console.log(
      `| SmolLM2-135M | ${JSON.stringify(first.text)} | load ${model.info.loadMilliseconds.toFixed(0)} ms | decode ${cached!.milliseconds.toFixed(1)} ms | replay ${replay.milliseconds.toFixed(0)} ms |`,
    );
    await engine.dispose();
  },
  300_000,
);
