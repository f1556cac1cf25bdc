// What the engine takes a path for in Node: a file with those beside it that belong to it, or a
// folder.
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createEngine, type Engine, type ModelSource } from 'kvlens';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { smallGguf, writeGguf, type GgufEntry } from '../../support/gguf-writer.js';
import { rejection } from '../../support/kvlens.js';

const fixtures = fileURLToPath(new URL('../../../.build/fixtures', import.meta.url));

let engine: Engine;
let folder: string;
beforeAll(async () => {
  engine = await createEngine({ threads: 1 });
  folder = mkdtempSync(join(tmpdir(), 'kvlens-sources-'));
});
afterAll(async () => {
  await engine.dispose();
  rmSync(folder, { recursive: true, force: true });
});

/** Name, format, and whether there is a tokenizer. */
async function told(source: ModelSource): Promise<[string, string, boolean]> {
  const model = await engine.loadModel(source);
  const result: [string, string, boolean] = [
    model.info.name,
    model.info.format,
    model.tokenizer !== undefined,
  ];
  await model.dispose();
  return result;
}

/** A folder of copies. */
function folderOf(name: string, ...paths: string[]): string {
  const made = join(folder, name);
  mkdirSync(made);
  for (const path of paths) copyFileSync(join(fixtures, path), join(made, basename(path)));
  return made;
}

test('a GGUF file by path and by file: address', async () => {
  const path = join(fixtures, 'stories260k/stories260K-q8_0.gguf');
  expect(await told(path)).toEqual(['stories260K', 'gguf', true]);
  expect(await told(pathToFileURL(path))).toEqual(['stories260K', 'gguf', true]);
});

test("a folder in Hugging Face's layout, and its safetensors file", async () => {
  const hf = folderOf(
    'qwen',
    'hf/qwen2-bias-f32/config.json',
    'hf/qwen2-bias-f32/model.safetensors',
  );
  expect((await told(hf))[1]).toBe('safetensors');
  expect((await told(join(hf, 'model.safetensors')))[1]).toBe('safetensors');
});

test('llama2.c with the tokenizer beside it, other models there being left alone', async () => {
  const stories = folderOf(
    'stories',
    'stories260k/stories260K.bin',
    'stories260k/tok512.bin',
    'stories260k/stories260K-q8_0.gguf',
  );
  expect(await told(join(stories, 'stories260K.bin'))).toEqual([
    'stories260K.bin',
    'llama2c',
    true,
  ]);
});

test('the first part of a split GGUF file, whatever its name has in it', async () => {
  const { entries, tensors } = smallGguf();
  const all = [...tensors.values()];
  const part = (no: number): [string, GgufEntry][] => [
    ['split.no', { type: 'u32', value: no }],
    ['split.count', { type: 'u32', value: 2 }],
  ];
  const stem = join(folder, '50 % #1');
  writeFileSync(
    `${stem}-00001-of-00002.gguf`,
    writeGguf({ entries: [...entries, ...part(0)], tensors: all.slice(0, 9) }),
  );
  writeFileSync(
    `${stem}-00002-of-00002.gguf`,
    writeGguf({ entries: part(1), tensors: all.slice(9) }),
  );
  expect(await told(`${stem}-00001-of-00002.gguf`)).toEqual([
    '50 % #1-00001-of-00002.gguf',
    'gguf',
    true,
  ]);
});

test('an address over HTTP, with and without ranges', async () => {
  const bytes = readFileSync(join(fixtures, 'stories260k/stories260K-q8_0.gguf'));
  const server = createServer((request, response) => {
    const [, from, to] = /^\/ranges.*/.test(request.url!)
      ? (/^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [])
      : [];
    const part = from === undefined ? bytes : bytes.subarray(Number(from), Number(to) + 1);
    const range =
      from === undefined
        ? {}
        : { 'content-range': `bytes ${from}-${Number(from) + part.length - 1}/${bytes.length}` };
    response
      .writeHead(from === undefined ? 200 : 206, { 'content-length': part.length, ...range })
      .end(part);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  for (const path of ['ranges/m.gguf', 'whole/m.gguf']) {
    expect(await told(`http://127.0.0.1:${port}/${path}`)).toEqual(['stories260K', 'gguf', true]);
  }
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rejection('network_error', engine.loadModel(`http://127.0.0.1:${port}/whole/m.gguf`));
});

test('what is not there is missing_file, and the cache of downloads needs a browser', async () => {
  await rejection('missing_file', engine.loadModel(join(folder, 'none.gguf')));
  await rejection('missing_file', engine.loadModel(join(folder, 'none', 'none.gguf')));
  await rejection('missing_file', engine.loadModel(pathToFileURL(join(folder, 'none.gguf'))));
  await rejection('invalid_argument', engine.loadModel(folderOf('empty')));
  await rejection(
    'cache_unavailable',
    engine.loadModel(join(fixtures, 'stories260k/stories260K-q8_0.gguf'), { cache: true }),
  );
});

test('a file that no module can hold is model_too_large, with its true size', async () => {
  const path = join(folder, 'large.gguf');
  copyFileSync(join(fixtures, 'stories260k/stories260K-q8_0.gguf'), path);
  // The rest is a hole that takes no room on the disk.
  truncateSync(path, 2 ** 32 + 1000);
  const { context } = await rejection('model_too_large', engine.loadModel(path));
  expect(context).toEqual({ value: 2 ** 32 + 1000, limit: 2 ** 32 - 1 });
});
