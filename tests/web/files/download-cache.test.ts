import { beforeEach, describe, expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { memoryStore, opfsStore } from '../../../web/src/files/blob-stores.js';
import { DownloadCache, type BlobStore } from '../../../web/src/files/download-cache.js';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import { fixtureBytes } from '../../support/fixtures.js';
import { origin, serve, type Server } from '../../support/http.js';

const size = (9 << 20) + 123; // two whole chunks and a part of one
const bytes = new Uint8Array(size);
for (let i = 0; i < size; i += 97) bytes[i] = i % 256;

/** A store whose files a test can look at and damage. */
class Inspected implements BlobStore {
  readonly names = new Set<string>();
  private readonly inner = memoryStore();
  get = (name: string) => this.inner.get(name);
  async put(name: string, pieces: AsyncIterable<Uint8Array>) {
    await this.inner.put(name, pieces);
    this.names.add(name);
  }
  async delete(name: string) {
    this.names.delete(name);
    await this.inner.delete(name);
  }
  async replace(suffix: string, change: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array) {
    const name = [...this.names].find((candidate) => candidate.endsWith(suffix)) ?? '';
    const blob = await this.inner.get(name);
    const changed = change(new Uint8Array(await (blob as Blob).arrayBuffer()));
    await this.inner.put(
      name,
      (async function* () {
        yield changed;
      })(),
    );
  }
}

let server: Server;
let store: Inspected;
let cache: DownloadCache;
const url = `${origin}/m.gguf`;
const open = () => cache.open(url, { fetch: server.fetch });
const downloads = () => server.requests.filter((request) => !request.endsWith('bytes=0-0')).length;

beforeEach(() => {
  server = serve({ '/m.gguf': { bytes, etag: '"1"' } });
  store = new Inspected();
  cache = new DownloadCache(store);
});

async function expectWhole(source: Awaited<ReturnType<typeof open>>) {
  if (source === undefined) throw new Error('not there');
  const found = await source.read(0, source.size);
  expect(found.length).toBe(size);
  expect(found.every((byte, i) => byte === bytes[i])).toBe(true);
}

describe('the download cache', () => {
  test('downloads once and then reads what it has', async () => {
    await expectWhole(await open());
    expect(downloads()).toBe(1);
    await expectWhole(await open());
    expect(downloads()).toBe(1);
    expect(store.names.size).toBe(2);
  });

  test('fetches again when the ETag is another, and keeps one entry', async () => {
    await open();
    server.resources.set('/m.gguf', { bytes, etag: '"2"' });
    await expectWhole(await open());
    expect(downloads()).toBe(2);
    expect(store.names.size).toBe(2);
  });

  test.each<[string, string, (bytes: Uint8Array<ArrayBuffer>) => Uint8Array]>([
    [
      'one byte is flipped',
      '.data',
      (data) => {
        data[size - 1] = (data[size - 1] as number) ^ 1;
        return data;
      },
    ],
    ['the data are short', '.data', (data) => data.subarray(0, size - 1)],
    ['the record is not JSON', '.json', () => new TextEncoder().encode('{')],
    [
      'the record lacks its hashes',
      '.json',
      () => new TextEncoder().encode('{"etag":"\\"1\\"","size":1}'),
    ],
    ['the record is empty', '.json', () => new Uint8Array(0)],
  ])('drops an entry and fetches it again when %s', async (_, suffix, change) => {
    await open();
    await store.replace(suffix, change);
    await expectWhole(await open());
    expect(downloads()).toBe(2);
    await expectWhole(await open());
    expect(downloads()).toBe(2);
  });

  test('keeps nothing of a download that ends early or is aborted', async () => {
    server.resources.set('/m.gguf', { bytes, etag: '"1"', cutAfter: 5 << 20 });
    await expect(open()).rejects.toMatchObject({ code: 'truncated_file' });
    expect([...store.names].filter((name) => name.endsWith('.json'))).toEqual([]);
    server.resources.set('/m.gguf', { bytes, etag: '"1"' });
    const controller = new AbortController();
    const options = {
      fetch: server.fetch,
      signal: controller.signal,
      onProgress: () => controller.abort(),
    };
    await expect(cache.open(url, options)).rejects.toMatchObject({ code: 'aborted' });
    await expectWhole(await open());
  });

  test('does not keep a resource without an ETag', async () => {
    server.resources.set('/m.gguf', { bytes });
    await expectWhole(await open());
    expect(store.names.size).toBe(0);
  });

  test('reports a store without room as a typed error', async () => {
    const full: BlobStore = { ...memoryStore(), put: () => Promise.reject(new Error('quota')) };
    const opening = new DownloadCache(full).open(url, { fetch: server.fetch });
    await expect(opening).rejects.toMatchObject({ code: 'cache_unavailable' });
  });

  test('tells of download and verification', async () => {
    const stages = new Map<string, number>();
    const options = {
      fetch: server.fetch,
      onProgress: ({
        stage,
        bytes: done,
        total,
      }: {
        stage: string;
        bytes: number;
        total: number;
      }) => {
        expect(total).toBe(size);
        stages.set(stage, done);
      },
    };
    await cache.open(url, options);
    await cache.open(url, options);
    expect([...stages]).toEqual([
      ['download', size],
      ['verify', size],
    ]);
  });

  test('forgets a URL', async () => {
    await open();
    await cache.delete(url);
    expect(store.names.size).toBe(0);
  });

  test('passes a missing file on', async () => {
    expect(await cache.open(`${origin}/none`, { fetch: server.fetch })).toBeUndefined();
  });

  test('serves a checkpoint', async () => {
    const file = await fixtureBytes('stories260k/stories260K-q8_0.gguf');
    server.resources.set('/s.gguf', { bytes: file, etag: '"s"' });
    for (let round = 0; round < 2; ++round) {
      const checkpoint = await openCheckpoint(`${origin}/s.gguf`, { fetch: server.fetch, cache });
      expect(checkpoint.tensors).toHaveLength(47);
    }
    expect(downloads()).toBe(1);
  });
});

const hasOpfs = typeof navigator !== 'undefined' && navigator.storage?.getDirectory !== undefined;

test.skipIf(hasOpfs)('without a private file system the OPFS store is a typed error', async () => {
  const error: unknown = await opfsStore().catch((reason: unknown) => reason);
  expect(isKvLensError(error) && error.code).toBe('cache_unavailable');
});

test.skipIf(!hasOpfs)('the OPFS store keeps, replaces and deletes', async () => {
  const opfs = await opfsStore('kvlens-test');
  const put = (text: string) =>
    opfs.put(
      'a',
      (async function* () {
        yield new TextEncoder().encode(text);
      })(),
    );
  await put('one');
  await put('two');
  expect(await (await opfs.get('a'))?.text()).toBe('two');
  await opfs.delete('a');
  await opfs.delete('a');
  expect(await opfs.get('a')).toBeUndefined();
});
