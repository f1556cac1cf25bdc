// A real chat model, where `node tools/fetch-smollm2.mjs` has fetched it.
import { openAsBlob } from 'node:fs';
import { expect, test } from 'vitest';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import { ChatTemplate } from '../../../web/src/text/chat.js';
import { createTokenizer } from '../../../web/src/text/tokenizer.js';
import type { TokenizerData } from '../../../web/src/text/tokenizer-data.js';
import { smollm2Path } from '../../../tools/fetch-smollm2.mjs';

const path = smollm2Path();
if (path === undefined) {
  console.log('SmolLM2 is skipped: node tools/fetch-smollm2.mjs fetches it');
}

test.skipIf(path === undefined)(
  'SmolLM2-135M-Instruct: checkpoint, tokenizer and chat template',
  async () => {
    const checkpoint = await openCheckpoint({ 'model.gguf': await openAsBlob(path ?? '') });
    expect(checkpoint.config).toMatchObject({
      nLayers: 30,
      nHeads: 9,
      nKvHeads: 3,
      headDim: 64,
      dModel: 576,
      dFf: 1536,
      vocabSize: 49152,
      maxSeqLen: 8192,
      tiedEmbedding: true,
      rope: { theta: 100000, pairing: 'interleaved', freqFactors: [] },
    });
    const types = new Set(checkpoint.tensors.map((tensor) => tensor.dtype));
    expect([...types].sort()).toEqual(['f32', 'q4_1', 'q8_0']);

    const text = new ChatTemplate(checkpoint.chatTemplate).render([
      { role: 'user', content: 'What is the capital of France?' },
    ]);
    expect(text).toBe(
      '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' +
        '<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n',
    );
    const tokenizer = createTokenizer(checkpoint.tokenizer as TokenizerData);
    const ids = [...tokenizer.encode(text)];
    expect(ids.slice(0, 4)).toEqual([1, 9690, 198, 2683]);
    expect(ids.slice(-5)).toEqual([198, 1, 520, 9531, 198]);
    expect(tokenizer.stopIds).toEqual([2, 1, 0]);

    const sample = "Hello, y'all! 😁 我想在apple工作1314151天～ \n\n\t x";
    expect(tokenizer.decode(tokenizer.encode(sample))).toBe(sample);
  },
);
