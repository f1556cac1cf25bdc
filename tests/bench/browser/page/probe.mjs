// What the machine can do at most from inside the browser, in the same run as what is compared with
// it.
const streamBytes = 256 * 2 ** 20;
const sliceBytes = 8 * 2 ** 20;
const pieceBytes = 2 * 2 ** 20;
const pageBytes = 65536;

let workers = [];

function call(worker, method, options) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) =>
      data.error ? reject(new Error(data.error)) : resolve(data.value);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage({ method, options });
  });
}

export async function load({ threads }) {
  workers = Array.from(
    { length: threads },
    () => new Worker(new URL('./probe-worker.mjs', import.meta.url), { type: 'module' }),
  );
  await Promise.all(
    workers.map((worker) => call(worker, 'start', { bytes: streamBytes / threads })),
  );
}

/** Bytes and integer operations a second, all threads together. */
export async function run() {
  const rates = {};
  for (const kind of ['bandwidth', 'int8']) {
    const each = await Promise.all(workers.map((worker) => call(worker, kind)));
    rates[kind] = each.reduce((sum, rate) => sum + rate, 0);
  }
  return rates;
}

const timed = async (work) => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

/**
 * Milliseconds to bring a file that is a Blob into fresh WebAssembly memory, each way there is; and
 * those to copy the same bytes from memory.
 */
export async function copy({ url }) {
  const blob = await (await fetch(url)).blob();
  const fresh = () =>
    new Uint8Array(new WebAssembly.Memory({ initial: Math.ceil(blob.size / pageBytes) }).buffer);
  const slices = await timed(async () => {
    const memory = fresh();
    for (let at = 0; at < blob.size; at += sliceBytes) {
      memory.set(new Uint8Array(await blob.slice(at, at + sliceBytes).arrayBuffer()), at);
    }
  });
  const stream = await timed(async () => {
    const memory = fresh();
    let at = 0;
    for await (const chunk of blob.stream()) {
      memory.set(chunk, at);
      at += chunk.length;
    }
  });
  const reused = await timed(async () => {
    const memory = fresh();
    const reader = blob.stream().getReader({ mode: 'byob' });
    let buffer = new ArrayBuffer(pieceBytes);
    for (let at = 0; at < blob.size;) {
      const { value } = await reader.read(new Uint8Array(buffer));
      memory.set(value, at);
      at += value.length;
      buffer = value.buffer;
    }
  });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const fromMemory = await timed(async () => fresh().set(bytes));
  return { bytes: blob.size, slices, stream, reused, fromMemory };
}

export function unload() {
  for (const worker of workers) worker.terminate();
  workers = [];
}
