// Whatever happens to a file, opening it ends in a checkpoint or in a typed error of files.
import { describe, expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { openCheckpoint, type FileData } from '../../../web/src/files/open-checkpoint.js';
import { smallGguf, writeGguf } from '../../support/gguf-writer.js';
import { smallHf, writeJson, writeSafetensors } from '../../support/hf-writer.js';

const gguf = (() => {
  const model = smallGguf();
  return writeGguf({ entries: [...model.entries], tensors: [...model.tensors.values()] });
})();
const ggufFiles = (bytes: Uint8Array) => ({ 'm.gguf': bytes });

const hf = smallHf();
const config = writeJson(hf.config);
const safetensors = writeSafetensors(hf.tensors);
const hfFiles = (bytes: Uint8Array) => ({ 'config.json': config, 'model.safetensors': bytes });

const fileCodes = new Set(['invalid_file', 'unsupported_file', 'truncated_file', 'missing_file']);

async function outcome(files: Record<string, FileData>): Promise<string> {
  try {
    await openCheckpoint(files);
    return 'opened';
  } catch (error) {
    if (isKvLensError(error) && fileCodes.has(error.code)) return error.code;
    throw error;
  }
}

// A linear congruential generator: the same choices in every run.
function* choices(count: number): Generator<number> {
  let state = 1;
  for (let i = 0; i < count; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state;
  }
}

describe.each([
  ['GGUF', gguf, ggufFiles],
  ['safetensors', safetensors, hfFiles],
] as const)('%s', (_, whole, files) => {
  test('cut anywhere is truncated', async () => {
    expect(await outcome(files(whole))).toBe('opened');
    for (let length = 0; length < whole.length; length += length < 3000 ? 1 : 97) {
      expect(await outcome(files(whole.subarray(0, length))), `${length} bytes`).toBe(
        'truncated_file',
      );
    }
  });

  test('with any byte of its header changed is opened or refused', async () => {
    for (const choice of choices(3000)) {
      const bytes = whole.slice();
      bytes[(choice >>> 8) % 2500] = choice & 255;
      await outcome(files(bytes));
    }
  });

  test('with a run of bytes overwritten is opened or refused', async () => {
    for (const choice of choices(1000)) {
      const bytes = whole.slice();
      const start = (choice >>> 8) % 2500;
      bytes.fill(choice & 255, start, start + 8);
      await outcome(files(bytes));
    }
  });
});
