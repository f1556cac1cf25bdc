import { describe, expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { openHttp } from '../../../web/src/files/http-source.js';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import { blobSource, bufferSource, type ByteSource } from '../../../web/src/files/source.js';
import { streamTensors } from '../../../web/src/files/stream-tensors.js';
import { fixtureBytes } from '../../support/fixtures.js';
import { smallHf, writeJson, writeSafetensors } from '../../support/hf-writer.js';
import { origin, serve, type Resource } from '../../support/http.js';

const size = 5000;
const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 7) % 251);

async function openServed(resource: Partial<Resource>) {
  const server = serve({ '/m': { bytes, ...resource } });
  const source = await openHttp(`${origin}/m`, { fetch: server.fetch });
  if (source === undefined) throw new Error('not there');
  return { server, source };
}

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<number[]> {
  const all: number[] = [];
  for await (const piece of pieces) all.push(...piece);
  return all;
}

async function codeOf(action: Promise<unknown>) {
  const error: unknown = await action.then(
    () => 'no error',
    (reason: unknown) => reason,
  );
  if (!isKvLensError(error)) throw error;
  return error.code;
}

const kinds: [string, () => Promise<ByteSource>][] = [
  ['a buffer', async () => bufferSource(bytes)],
  ['a blob', async () => blobSource(new Blob([bytes]))],
  ['HTTP with ranges', async () => (await openServed({})).source],
  ['HTTP without ranges', async () => (await openServed({ ranges: false })).source],
  [
    'HTTP with ranges but hidden Content-Range',
    async () => (await openServed({ contentRange: false })).source,
  ],
  [
    'HTTP without a length',
    async () => (await openServed({ ranges: false, length: false })).source,
  ],
];

describe.each(kinds)('%s', (_, open) => {
  test('reads any range, in any order', async () => {
    const source = await open();
    expect(source.size).toBe(size);
    for (const [offset, length] of [
      [0, 8],
      [4000, 1000],
      [17, 3000],
      [0, size],
      [size, 0],
      [1, 0],
    ] as const) {
      expect([...(await source.read(offset, length))]).toEqual([
        ...bytes.subarray(offset, offset + length),
      ]);
    }
  });

  test('streams a range', async () => {
    const source = await open();
    expect(await collect(source.stream(10, 4500))).toEqual([...bytes.subarray(10, 4510)]);
    expect(await collect(source.stream(5, 5))).toEqual([...bytes.subarray(5, 10)]);
  });

  test('serves several readers at once', async () => {
    const source = await open();
    const reads = [3000, 0, 4000, 1000].map((offset) => source.read(offset, 1000));
    const parts = await Promise.all(reads);
    expect(parts.map((part) => part[0])).toEqual([bytes[3000], bytes[0], bytes[4000], bytes[1000]]);
  });

  test('refuses what lies beyond its end', async () => {
    const source = await open();
    expect(await codeOf(source.read(size - 1, 2))).toBe('truncated_file');
    expect(await codeOf(collect(source.stream(size, 1)))).toBe('truncated_file');
  });

  test('does nothing after an abort, and goes on afterwards', async () => {
    const source = await open();
    expect(await codeOf(source.read(0, 10, AbortSignal.abort()))).toBe('aborted');
    const controller = new AbortController();
    const reading = (async () => {
      for await (const _piece of source.stream(0, size, controller.signal)) controller.abort();
      await source.read(0, 1, controller.signal);
    })();
    expect(await codeOf(reading)).toBe('aborted');
    expect([...(await source.read(100, 3))]).toEqual([...bytes.subarray(100, 103)]);
  });
});

describe('a blob that changes while it is streamed', () => {
  const changing = (
    end: (controller: ReadableStreamDefaultController<Uint8Array>) => void,
  ): Blob => {
    let pulls = 0;
    const stream = () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          if (pulls++ === 0) controller.enqueue(bytes.subarray(0, 1000));
          else end(controller);
        },
      });
    return Object.assign(new Blob([bytes]), { slice: () => ({ stream }) as unknown as Blob });
  };

  test('is told from one that ends early', async () => {
    const unreadable = blobSource(changing((controller) => controller.error(new Error('changed'))));
    expect(await codeOf(collect(unreadable.stream(0, size)))).toBe('invalid_file');
    const short = blobSource(changing((controller) => controller.close()));
    expect(await codeOf(collect(short.stream(0, size)))).toBe('truncated_file');
  });
});

// Chromium's streams of blobs sometimes never answer again.
test.each(['bytes', undefined] as const)(
  'a blob whose stream (type %s) stops for ever is read on, and an abort is seen',
  async (type) => {
    const stopping = (): Blob => {
      const blob = new Blob([bytes]);
      const { slice } = Blob.prototype;
      blob.slice = (begin = 0, end = size) => {
        const part = slice.call(blob, begin, end);
        let given = false;
        const pull = (controller: ReadableStreamController<Uint8Array>): Promise<void> => {
          if (given) return new Promise(() => {});
          given = true;
          const first = bytes.slice(begin, begin + 100);
          const request = 'byobRequest' in controller ? controller.byobRequest : null;
          if (request === null) controller.enqueue(first);
          else {
            new Uint8Array(request.view!.buffer).set(first, request.view!.byteOffset);
            request.respond(100);
          }
          return Promise.resolve();
        };
        part.stream = () =>
          new ReadableStream({ type, pull } as UnderlyingByteSource) as ReadableStream<
            Uint8Array<ArrayBuffer>
          >;
        return part;
      };
      return blob;
    };
    expect(await collect(blobSource(stopping()).stream(10, 4000))).toEqual([
      ...bytes.subarray(10, 4010),
    ]);
    const abort = new AbortController();
    const pieces = blobSource(stopping()).stream(0, size, abort.signal)[Symbol.asyncIterator]();
    expect((await pieces.next()).value).toHaveLength(100);
    const second = codeOf(pieces.next());
    abort.abort();
    expect(await second).toBe('aborted');
  },
);

describe('HTTP', () => {
  test('with ranges sends no more than was asked for', async () => {
    const { server, source } = await openServed({});
    await source.read(100, 50);
    expect(server.requests).toEqual(['GET /m bytes=0-0', 'GET /m bytes=100-149']);
    expect(server.sent).toBeLessThan(60);
  });

  test('without ranges a file read in order is sent once', async () => {
    const { server, source } = await openServed({ ranges: false });
    for (let offset = 0; offset < size; offset += 500) await source.read(offset, 500);
    expect(server.requests).toHaveLength(1);
    expect(server.sent).toBe(size);
    await source.read(0, 1);
    expect(server.requests).toHaveLength(2);
  });

  test('tells a missing file from a failure', async () => {
    const server = serve({ '/gone': { bytes, status: 410 }, '/broken': { bytes, status: 503 } });
    const { fetch } = server;
    expect(await openHttp(`${origin}/nothing`, { fetch })).toBeUndefined();
    expect(await openHttp(`${origin}/gone`, { fetch })).toBeUndefined();
    const error: unknown = await openHttp(`${origin}/broken`, { fetch }).catch(
      (reason: unknown) => reason,
    );
    expect(isKvLensError(error) && error.code === 'network_error' && error.context.status).toBe(
      503,
    );
  });

  test('reports a connection that fails', async () => {
    const fetch = () => Promise.reject(new TypeError('connection refused'));
    const error: unknown = await openHttp(`${origin}/m`, { fetch }).catch(
      (reason: unknown) => reason,
    );
    if (!isKvLensError(error)) throw error;
    expect(error.code).toBe('network_error');
    expect(error.message).toContain('connection refused');
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  test.each([
    ['with ranges', true],
    ['without', false],
  ])('notices a body cut short, %s', async (_, ranges) => {
    const { source } = await openServed({ ranges, cutAfter: 1000 });
    expect(await codeOf(source.read(0, 2000))).toBe('truncated_file');
  });

  test.each([
    ['with ranges', true],
    ['without', false],
  ])('notices that the file changes, %s', async (_, ranges) => {
    const { server, source } = await openServed({ ranges, etag: '"1"' });
    await source.read(1000, 10);
    server.resources.set('/m', { bytes, ranges, etag: '"2"' });
    expect(await codeOf(source.read(0, 10))).toBe('network_error');
  });

  test('an empty file has size 0', async () => {
    expect((await openServed({ bytes: new Uint8Array(0) })).source.size).toBe(0);
  });
});

describe('a checkpoint at a URL', () => {
  test.each([
    ['with ranges', true],
    ['without', false],
  ])('GGUF %s', async (_, ranges) => {
    const file = await fixtureBytes('stories260k/stories260K-q8_0.gguf');
    const server = serve({ '/a/stories.gguf': { bytes: file, ranges } });
    const checkpoint = await openCheckpoint(`${origin}/a/stories.gguf`, { fetch: server.fetch });
    let total = 0;
    for await (const piece of streamTensors(checkpoint)) total += piece.bytes.length;
    expect(total).toBe(checkpoint.totalBytes);
  });

  test('a folder in Hugging Face layout, query kept', async () => {
    const { config, tensors } = smallHf();
    const server = serve({
      '/m/config.json': { bytes: writeJson(config) },
      '/m/model.safetensors': { bytes: writeSafetensors(tensors) },
    });
    const checkpoint = await openCheckpoint(`${origin}/m/?token=1`, { fetch: server.fetch });
    expect(checkpoint.format).toBe('safetensors');
    expect(checkpoint.tensors[0]?.source.name).toBe(`${origin}/m/model.safetensors?token=1`);
  });

  test('llama2.c with its tokenizer beside it', async () => {
    const server = serve({
      '/s.bin': { bytes: await fixtureBytes('stories260k/stories260K.bin') },
      '/tokenizer.bin': { bytes: await fixtureBytes('stories260k/tok512.bin') },
    });
    const checkpoint = await openCheckpoint(new URL('/s.bin', origin), { fetch: server.fetch });
    expect(checkpoint.tokenizer?.kind).toBe('sentencepiece');
  });

  test('that is not there, or is no URL', async () => {
    const { fetch } = serve({});
    expect(await codeOf(openCheckpoint(`${origin}/none.gguf`, { fetch }))).toBe('missing_file');
    expect(await codeOf(openCheckpoint('https://', { fetch }))).toBe('invalid_argument');
    const signal = AbortSignal.abort();
    expect(await codeOf(openCheckpoint(`${origin}/none.gguf`, { fetch, signal }))).toBe('aborted');
  });
});

describe('opening a checkpoint reads no weight', () => {
  /** A source and where the furthest read of it has ended. */
  function watched(data: Uint8Array, name: string): { source: ByteSource; readonly end: number } {
    let end = 0;
    const whole = bufferSource(data, name);
    const source: ByteSource = {
      ...whole,
      read(offset, length, signal) {
        end = Math.max(end, offset + length);
        return whole.read(offset, length, signal);
      },
      stream: () => expect.unreachable('weights are streamed'),
    };
    return {
      source,
      get end() {
        return end;
      },
    };
  }

  test('of safetensors, of llama2.c, and of GGUF beyond its first megabyte', async () => {
    const hf = watched(
      await fixtureBytes('hf/llama-gqa-untied-f32/model.safetensors'),
      'model.safetensors',
    );
    const config = await fixtureBytes('hf/llama-gqa-untied-f32/config.json');
    const { tensors } = await openCheckpoint({
      'config.json': config,
      'model.safetensors': hf.source,
    });
    expect(hf.end).toBeLessThanOrEqual(Math.min(...tensors.map((tensor) => tensor.byteOffset)));

    const bin = watched(await fixtureBytes('stories260k/stories260K.bin'), 'stories260K.bin');
    await openCheckpoint(bin.source);
    expect(bin.end).toBe(28);

    const gguf = watched(
      await fixtureBytes('stories260k/stories260K-f32.gguf'),
      'stories260K.gguf',
    );
    await openCheckpoint(gguf.source);
    expect(gguf.source.size).toBeGreaterThan(1 << 20);
    expect(gguf.end).toBe(1 << 20);
  });
});

describe('streaming tensors', () => {
  test('gives every tensor its bytes, in file order, with progress', async () => {
    const file = await fixtureBytes('stories260k/stories260K-q4_0.gguf');
    const checkpoint = await openCheckpoint(new Blob([file]));
    const filled = new Map(
      checkpoint.tensors.map((tensor) => [tensor.name, new Uint8Array(tensor.byteLength)]),
    );
    const steps: number[] = [];
    let last = -1;
    const onProgress = ({ bytes: done, total }: { bytes: number; total: number }) => {
      expect(total).toBe(checkpoint.totalBytes);
      steps.push(done);
    };
    for await (const { tensor, offset, bytes: piece } of streamTensors(checkpoint, {
      onProgress,
    })) {
      expect(tensor.byteOffset + offset).toBeGreaterThan(last);
      last = tensor.byteOffset + offset;
      filled.get(tensor.name)?.set(piece, offset);
    }
    for (const tensor of checkpoint.tensors) {
      expect(filled.get(tensor.name)).toEqual(
        file.subarray(tensor.byteOffset, tensor.byteOffset + tensor.byteLength),
      );
    }
    expect(steps.at(-1)).toBe(checkpoint.totalBytes);
    expect([...steps].sort((a, b) => a - b)).toEqual(steps);
  });

  test('pieces smaller than tensors and tensors smaller than pieces', async () => {
    const file = await fixtureBytes('stories260k/stories260K-f32.gguf');
    const whole = bufferSource(file, 'm.gguf');
    for (const step of [1 << 16, 333]) {
      const source: ByteSource = {
        ...whole,
        async *stream(offset, length) {
          for (let at = offset; at < offset + length; at += step) {
            yield file.subarray(at, Math.min(at + step, offset + length));
          }
        },
      };
      const checkpoint = await openCheckpoint(source);
      let total = 0;
      for await (const { tensor, offset, bytes: piece } of streamTensors(checkpoint)) {
        const at = tensor.byteOffset + offset;
        if (piece.some((byte, i) => byte !== file[at + i]))
          throw new Error(`${tensor.name} at ${offset}`);
        total += piece.length;
      }
      expect(total).toBe(checkpoint.totalBytes);
    }
  });

  test('stops at an abort', async () => {
    const checkpoint = await openCheckpoint(await fixtureBytes('stories260k/stories260K-f32.gguf'));
    const run = async () => {
      for await (const _piece of streamTensors(checkpoint, { signal: AbortSignal.abort() })) break;
    };
    expect(await codeOf(run())).toBe('aborted');
  });
});
