import { describe, expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import { fixtureBytes } from '../../support/fixtures.js';

/** stories260K with the int32 at `index` of its header replaced. */
async function withField(index: number, value: number): Promise<Uint8Array> {
  const bytes = (await fixtureBytes('stories260k/stories260K.bin')).slice();
  new DataView(bytes.buffer).setInt32(index * 4, value, true);
  return bytes;
}

async function refusal(files: Record<string, Uint8Array>) {
  const error: unknown = await openCheckpoint(files).catch((reason: unknown) => reason);
  if (!isKvLensError(error)) throw error;
  return [error.code, error.message];
}

describe('a llama2.c file is refused when', () => {
  test.each([
    ['dim', 0, 0, 'invalid_file', 'dim is 0'],
    ['dim', 0, 63, 'invalid_file', 'dim is 63, must be a multiple of n_heads 8'],
    ['hidden_dim', 1, -172, 'invalid_file', 'hidden_dim is -172'],
    ['n_layers', 2, 2 ** 31 - 1, 'invalid_file', 'n_layers is 2147483647'],
    ['n_layers', 2, 6, 'truncated_file', 'needed'],
    ['n_layers', 2, 4, 'invalid_file', 'file size is 1056540'],
    ['n_heads', 3, 0, 'invalid_file', 'n_heads is 0'],
    ['n_heads', 3, 64, 'invalid_file', 'dim / n_heads is 1, must be an even integer'],
    ['n_kv_heads', 4, 3, 'invalid_file', 'n_heads is 8, must be a multiple of n_kv_heads 3'],
    ['vocab_size', 5, 0, 'invalid_file', 'vocab_size is 0'],
    ['vocab_size', 5, -512, 'truncated_file', 'needed'],
    ['seq_len', 6, 0, 'invalid_file', 'seq_len is 0'],
    ['magic', 0, 0x616b3432, 'unsupported_file', 'magic is "\\"ak42\\""'],
  ])('%s (field %i) is %i', async (_, index, value, code, says) => {
    const [foundCode, message] = await refusal({ 'stories.bin': await withField(index, value) });
    expect(foundCode).toBe(code);
    expect(message).toContain(says);
    expect(message).toContain('stories.bin');
  });

  test('it is cut, even by one byte', async () => {
    const bytes = await fixtureBytes('stories260k/stories260K.bin');
    const [code] = await refusal({ 'stories.bin': bytes.subarray(0, bytes.length - 1) });
    expect(code).toBe('truncated_file');
    const [headerCode] = await refusal({ 'stories.bin': bytes.subarray(0, 20) });
    expect(headerCode).toBe('truncated_file');
  });
});

describe('a llama2.c tokenizer is refused when', () => {
  const open = async (tokenizer: Uint8Array) =>
    refusal({
      'stories.bin': await fixtureBytes('stories260k/stories260K.bin'),
      'tokenizer.bin': tokenizer,
    });

  test('it is cut', async () => {
    const bytes = await fixtureBytes('stories260k/tok512.bin');
    expect((await open(bytes.subarray(0, bytes.length - 1)))[0]).toBe('truncated_file');
  });
  test('it has bytes left over', async () => {
    const bytes = await fixtureBytes('stories260k/tok512.bin');
    const longer = new Uint8Array(bytes.length + 1);
    longer.set(bytes);
    const [code, message] = await open(longer);
    expect(code).toBe('invalid_file');
    expect(message).toContain('the end of 512 tokens');
  });
  test('a token has an absurd length', async () => {
    const bytes = (await fixtureBytes('stories260k/tok512.bin')).slice();
    new DataView(bytes.buffer).setUint32(8, 2 ** 32 - 1, true);
    expect((await open(bytes))[0]).toBe('truncated_file');
  });
  test('the byte tokens are not where they must be', async () => {
    const bytes = (await fixtureBytes('stories260k/tok512.bin')).slice();
    const at = new TextDecoder('latin1').decode(bytes).indexOf('<0x00>');
    bytes[at + 3] = 0x31; // <0x10>
    const [code, message] = await open(bytes);
    expect(code).toBe('invalid_file');
    expect(message).toContain('token 3 is "<0x10>", must be <0x00>');
  });
});

describe('files are refused when', () => {
  const none = new Uint8Array(16);
  test.each([
    ['there are none', {}, 'invalid_argument', 'none'],
    [
      'none is a model',
      { 'readme.md': none, 'notes.txt': none },
      'invalid_argument',
      'readme.md, notes.txt',
    ],
    [
      'there are two models',
      { 'a.gguf': none, 'b.gguf': none },
      'invalid_argument',
      'a.gguf, b.gguf',
    ],
    [
      'only later parts of a split model are there',
      { 'm-00002-of-00003.gguf': none, 'm-00003-of-00003.gguf': none },
      'invalid_argument',
      'm-00002-of-00003.gguf',
    ],
    [
      'the only one is of no known format',
      { 'readme.md': none },
      'unsupported_file',
      'readme.md: format is "unknown"',
    ],
  ])('%s', async (_, files, code, says) => {
    const [foundCode, message] = await refusal(files as Record<string, Uint8Array>);
    expect(foundCode).toBe(code);
    expect(message).toContain(says);
  });

  test('a single buffer is of no known format', async () => {
    const error: unknown = await openCheckpoint(none).catch((reason: unknown) => reason);
    if (!isKvLensError(error)) throw error;
    expect(error.code).toBe('unsupported_file');
    expect(error.message).toContain('GGUF, safetensors and llama2.c');
  });
});
