// Weights go from a file straight into the module's memory: what loading holds in JavaScript beside
// them is bounded, however large the file is.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, openAsBlob, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { createEngine } from 'kvlens';
import { loadCore } from 'kvlens/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openCheckpoint } from '../../../web/src/files/open-checkpoint.js';
import { modelFromCheckpoint } from '../../support/checkpoint-model.js';
import { javaScriptBytes, javaScriptBytesInUse } from '../../support/javascript-memory.mjs';

const megabyte = 2 ** 20;
const bound = 64 * megabyte;
const shown = (bytes: number): string => `${(bytes / megabyte).toFixed(1)} MB`;

let folder: string;
let path: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kvlens-load-memory-'));
  path = join(folder, 'model.gguf');
  // In a process of its own, whose memory is not measured.
  const writer = new URL('../../bench/browser/gguf-file.mjs', import.meta.url).href;
  const script = `import { writeGguf } from '${writer}'; writeGguf(process.argv[1], 'q8_0');`;
  execFileSync(process.execPath, ['--input-type=module', '--eval', script, path]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * The most that JavaScript uses in this thread at any call of `look`, above what it used before.
 */
async function peak(
  run: (look: () => void) => Promise<void>,
): Promise<{ bytes: number; looks: number }> {
  const start = javaScriptBytesInUse();
  let [bytes, looks] = [0, 0];
  await run(() => {
    bytes = Math.max(bytes, javaScriptBytes() - start);
    ++looks;
  });
  return { bytes, looks };
}

test('the measure sees a file that is held whole', async () => {
  const { bytes } = await peak(async (look) => {
    const whole = await (await openAsBlob(path)).arrayBuffer();
    look();
    expect(whole.byteLength).toBeGreaterThan(130 * megabyte);
  });
  expect(bytes).toBeGreaterThan(130 * megabyte);
});

test('the core from a Blob: at most 64 MB in JavaScript, the weights as they are in the module', async () => {
  const core = await loadCore();
  const { bytes, looks } = await peak(async (look) => {
    const checkpoint = await openCheckpoint(await openAsBlob(path));
    look();
    const model = await modelFromCheckpoint(core, checkpoint, { onProgress: look });
    const { liveBytes, heapBytes } = core.memory();
    expect(model.parameterBytes).toBe(checkpoint.totalBytes);
    expect(checkpoint.totalBytes).toBeGreaterThan(130 * megabyte);
    // The module's memory never shrinks: its size is what loading took at most.
    expect(liveBytes - checkpoint.totalBytes).toBeLessThan(megabyte);
    expect(heapBytes - checkpoint.totalBytes).toBeLessThan(bound);
    console.log(
      `| load of ${shown(checkpoint.totalBytes)} by the core | the module's memory: ${shown(heapBytes)} |`,
    );
  });
  console.log(`| load by the core | most in JavaScript: ${shown(bytes)} at ${looks} looks |`);
  expect(looks).toBeGreaterThan(100);
  expect(bytes).toBeLessThan(bound);
  core.dispose();
});

test('the engine from a path: at most 64 MB in JavaScript in both threads', async () => {
  const inWorker = new Float64Array(new SharedArrayBuffer(16));
  const worker = new Worker(new URL('../../support/measured-worker.mjs', import.meta.url), {
    workerData: inWorker,
  });
  const engine = await createEngine({ threads: 1, createWorker: () => worker as never });
  const { bytes, looks } = await peak(async (look) => {
    const model = await engine.loadModel(path, { onProgress: look });
    expect(model.info.parameterBytes).toBeGreaterThan(130 * megabyte);
  });
  const [start, most] = inWorker as unknown as [number, number];
  const ofWorker = most - start;
  console.log(
    `| load by the engine | most in JavaScript: worker ${shown(ofWorker)}, page ${shown(bytes)} at ${looks} reports |`,
  );
  expect(start).toBeGreaterThan(0);
  expect(looks).toBeGreaterThan(30);
  expect(ofWorker + bytes).toBeLessThan(bound);
  await engine.dispose();
});
