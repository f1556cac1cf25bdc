// Files and inputs that people have and other loaders take; each folder of the fixture is one kind.
// Right values come from Python's `tokenizers`, Transformers and llama.cpp.
import { createEngine, type Engine, type EngineModel, type ModelSource } from 'kvlens';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import { createTokenizer } from '../../../web/src/text/tokenizer.js';
import { fixtureBytes, fixtureJson } from '../../support/fixtures.js';

let engine: Engine;
beforeAll(async () => {
  engine = await createEngine();
});
afterAll(() => engine.dispose());

const folderNames = [
  'config.json',
  'model.safetensors',
  'tokenizer.json',
  'tokenizer_config.json',
  'generation_config.json',
  'chat_template.jinja',
];

async function folder(path: string): Promise<Record<string, Uint8Array<ArrayBuffer>>> {
  const files: Record<string, Uint8Array<ArrayBuffer>> = {};
  for (const name of folderNames) {
    try {
      files[name] = await fixtureBytes(`cases/${path}/${name}`);
    } catch {
      // Not every folder has every file.
    }
  }
  return files;
}

const gguf = async (path: string) => ({ 'model.gguf': await fixtureBytes(`cases/${path}`) });

/** Loads a model, runs `use`, and disposes the model. */
async function withModel<T>(source: ModelSource, use: (model: EngineModel) => Promise<T>) {
  const model = await engine.loadModel(source);
  try {
    return await use(model);
  } finally {
    await model.dispose();
  }
}

async function logits(source: ModelSource, tokens: readonly number[]): Promise<number[]> {
  return withModel(source, async (model) => {
    const session = await model.createSession();
    const step = await session.prefill(tokens);
    await session.dispose();
    return [...step.logits!];
  });
}

function expectClose(found: readonly number[], right: readonly number[], bound: number): void {
  expect(found).toHaveLength(right.length);
  const worst = Math.max(...right.map((value, i) => Math.abs(value - found[i]!)));
  expect(worst).toBeLessThan(bound);
}

interface Logits {
  readonly logits?: readonly number[] | null;
}

describe.each(['R01-stored-tied-head', 'R03-inv-freq', 'R04-no-model-prefix', 'R09-eos-outside'])(
  '%s',
  (name) => {
    test('gives the logits of Transformers, which computes in float', async () => {
      const expected = await fixtureJson<Record<string, Logits>>(`cases/${name}/expected.json`);
      for (const [each, { logits: right }] of Object.entries(expected)) {
        if (!right) continue;
        expectClose(await logits(await folder(`${name}/${each}`), [3, 7, 11]), right, 1e-4);
      }
    });
  },
);

test.each([
  ['R11-split-count-0', ['merged.gguf', 'one.gguf', 'plain.gguf']],
  ['R12-id-outside', ['bos-max.gguf', 'eos-n.gguf', 'unknown-max.gguf']],
  ['R13-arrays-per-layer', ['attention.head_count_kv-u32-equal.gguf']],
  ['R15-pre-not-known', ['llama-falcon3.gguf', 'llama-tekken.gguf', 'qwen2-deepseek-r1-qwen.gguf']],
  ['R18-pooling-type', ['plain.gguf', 'pooling3.gguf', 'classifier.gguf']],
  ['R21-vocab-sizes', ['vocab_size-one-less.gguf', 'vocab_size-one-more.gguf']],
])('%s loads and gives the logits of llama.cpp', async (name, files) => {
  const expected = await fixtureJson<Record<string, Logits>>(`cases/${name}/expected.json`);
  for (const file of files) {
    const right = expected[file]?.logits;
    expect(right, file).toBeTruthy();
    expectClose(await logits(await gguf(`${name}/${file}`), [1, 3, 5]), right!, 1e-4);
  }
});

test('R13: layers that differ are refused by the layer', async () => {
  const file = await gguf('R13-arrays-per-layer/head_count_kv-unequal.gguf');
  await expect(engine.loadModel(file)).rejects.toMatchObject({
    code: 'unsupported_file',
    message: expect.stringContaining('of layer 1') as string,
  });
});

test.each(['end_of_sentence', 'end_of_turn', 'im_end'])(
  'R17: %s ends a generation whatever its type, and is one token',
  async (name) => {
    for (const type of [1, 3, 4]) {
      const path = `R17-end-token-normal/${name}-type${type}`;
      const right = await fixtureJson<{ eog: string; ids: string; end: string }>(
        `cases/${path}.expected.json`,
      );
      await withModel(await gguf(`${path}.gguf`), async (model) => {
        const ids = await model.tokenize(`a${right.end}b`);
        expect([...ids].join(' '), path).toBe(right.ids);
        const ends = [...right.eog.matchAll(/(\d+)\(/g)].map(([, id]) => Number(id));
        expect(model.tokenizer!.eosTokens).toEqual(expect.arrayContaining(ends));
        const session = await model.createSession();
        const result = await session.generate({ prompt: 'a', maxNewTokens: 8 }).result;
        expect(result, path).toMatchObject({ stop: 'eos', text: 'b' });
        await session.dispose();
      });
    }
  },
);

test('R23: ids of the padded part have no text, and a generation goes on after them', async () => {
  await withModel(await folder('R23-padded-vocabulary/model'), async (model) => {
    const session = await model.createSession();
    const { tokens, text, stop } = await session.generate({ prompt: 'a', maxNewTokens: 5 }).result;
    expect([...tokens]).toEqual([265, 98, 270, 97, 265]);
    expect([text, stop]).toEqual(['ba', 'token_limit']);
    expect(await model.detokenize([265])).toBe('');
    expect(await model.pieces([265])).toEqual(['']);
    await session.dispose();
  });
});

interface Case {
  readonly text: string;
  readonly ids: readonly number[];
  readonly decoded?: string;
}

describe.each([
  'R24-bytelevel-white-space',
  'R25-digits-unicode',
  'R26-missing-byte',
  'R27-metaspace-split-absent',
  'R27-metaspace-split-false',
  'R27-metaspace-split-true',
  'R27d-split-Contiguous-False',
  'R27d-split-MergedWithNext-False',
  'R27f-Punctuation-Isolated',
  'R27g-normalizer-Replace-dollar',
  'R32-no-model-type',
  'R32b-absent-decoder',
  'R32b-absent-pre_tokenizer',
  'own-normalized-added-token',
  'own-added-token-with-space-mark',
  'own-possessive-quantifier',
])('%s', (name) => {
  test('gives the ids and texts of Python', async () => {
    const json = await fixtureJson<Record<string, unknown>>(`cases/${name}/tokenizer.json`);
    const cases = await fixtureJson<Case[]>(`cases/${name}/expected.json`);
    const tokenizer = createTokenizer({ kind: 'tokenizer.json', json, config: {}, stopIds: [] });
    for (const { text, ids, decoded } of cases) {
      if (text !== undefined)
        expect([...tokenizer.encode(text)], JSON.stringify(text)).toEqual(ids);
      if (decoded !== undefined) expect(tokenizer.decode(ids)).toBe(decoded);
    }
  });
});

test.each([
  ['R24-bytelevel-white-space', 'expected-llamacpp.json'],
  ['R25-digits-unicode', 'expected-llamacpp.json'],
  ['R26-missing-byte', undefined],
])('%s as GGUF', async (name, file) => {
  const { tokenizer: data } = await openCheckpoint(await gguf(`${name}/model.gguf`));
  const tokenizer = createTokenizer(data!);
  if (file === undefined) {
    // Bytes that the vocabulary lacks are dropped before merging.
    expect([...tokenizer.encode('\u00e9ab')]).toEqual([2]);
    return;
  }
  for (const { text, ids } of await fixtureJson<Case[]>(`cases/${name}/${file}`)) {
    expect([...tokenizer.encode(text)], JSON.stringify(text)).toEqual(ids);
  }
});

test('R37: BOS and EOS by the class of the tokenizer', async () => {
  const expected = await fixtureJson<Record<string, number[]>>('cases/R37-add-bos/expected4.json');
  for (const [name, ids] of Object.entries(expected)) {
    const read = (file: string) =>
      fixtureJson<Record<string, unknown>>(`cases/R37-add-bos/${name}/${file}`);
    const json = await read('tokenizer.json');
    const config = await read('tokenizer_config.json');
    const tokenizer = createTokenizer({ kind: 'tokenizer.json', json, config, stopIds: [] });
    expect([...tokenizer.encode('ab')], name).toEqual(ids);
  }
});

test('R40: a rendered template as the prompt gives the ids of the messages, with one BOS', async () => {
  const messages = [{ role: 'user', content: 'Hi' }];
  for (const source of [
    await folder('R40-double-bos/model'),
    await gguf('R40-double-bos/model.gguf'),
  ]) {
    await withModel(source, async (model) => {
      const prompt = await model.applyChatTemplate(messages);
      const session = await model.createSession();
      const prefilled = async (request: Parameters<typeof session.generate>[0]) => {
        await session.reset();
        await session.generate({ ...request, maxNewTokens: 1 }).result;
        return [...(await session.state()).tokens];
      };
      const right = await prefilled({ messages });
      expect(right.slice(0, 2)).toEqual([256, 258]);
      expect(await prefilled({ prompt })).toEqual(right);
      expect(await prefilled({ prompt, addSpecial: false })).toEqual(right);
      expect(await prefilled({ prompt: 'a', addSpecial: false })).toEqual([97]);
      await session.dispose();
    });
  }
});

test('R41: stop strings may hold names of control tokens', async () => {
  await withModel(await folder('R41-stop-string-special/model'), async (model) => {
    const session = await model.createSession();
    for (const [stop, tokens, text] of [
      ['<|im_end|>', [98, 258], 'b'],
      ['<|im_end|>\n', [98, 258, 10], 'b'],
      ['<|im_start|>', [98, 258, 10, 257], 'b\n'],
      ['<|im_start|>user', [98, 258, 10, 257, 117, 115, 101, 114], 'b\n'],
    ] as const) {
      const request = { prompt: 'a', maxNewTokens: 30, stop: [stop], eosTokens: [] };
      const result = await session.generate(request).result;
      expect([...result.tokens], stop).toEqual(tokens);
      expect([result.stop, result.text]).toEqual(['stop_string', text]);
    }
    await session.dispose();
  });
});

test('R49: end tokens of every file count, and one named in tokenizer_config.json has no text', async () => {
  interface Right {
    readonly dec: string;
    readonly ids: number[];
    readonly eos: number | null;
  }
  const expected = await fixtureJson<Record<string, Right>>('cases/R49-eos-union/expected.json');
  for (const [name, { dec, ids }] of Object.entries(expected)) {
    await withModel(await folder(`R49-eos-union/${name}`), async (model) => {
      expect(await model.detokenize([98, 259]), name).toBe(dec);
      expect([...(await model.tokenize('a<e3>b', { addSpecial: false }))], name).toEqual(ids);
    });
  }
  await withModel(await folder('R49-eos-union/union'), async (model) => {
    expect(model.tokenizer!.eosTokens).toEqual(expect.arrayContaining([256, 257, 258, 259]));
  });
});

test('the post-processor is read, not probed with a letter', async () => {
  for (const name of ['bos', 'none']) {
    const path = `cases/own-probe-letter/${name}`;
    const json = await fixtureJson<Record<string, unknown>>(`${path}/tokenizer.json`);
    const { text, ids } = await fixtureJson<Case>(`${path}/expected.json`);
    const tokenizer = createTokenizer({ kind: 'tokenizer.json', json, config: {}, stopIds: [] });
    expect([...tokenizer.encode(text)]).toEqual(ids);
  }
});
