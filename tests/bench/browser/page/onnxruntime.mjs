// onnxruntime-web on the page's thread; keys and values go out of and into every call, as its users
// do.
import * as ort from '/peers/onnxruntime-web/dist/ort.wasm.min.mjs';

let session;
let dims;
let rows; // of the prompt last run with `keep`: { prompt, cache, next }

export async function load({ url, threads, shape }) {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = '/peers/onnxruntime-web/dist/';
  const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
  dims = shape;
  rows = undefined;
  const start = performance.now();
  session = await ort.InferenceSession.create(bytes, {
    executionProviders: ['wasm'],
    graphOptimizationLevel: 'all',
  });
  return { milliseconds: performance.now() - start, threads: ort.env.wasm.numThreads };
}

const integers = (values) =>
  new ort.Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);

function emptyCache() {
  const cache = {};
  for (let layer = 0; layer < dims.nLayers; ++layer) {
    for (const kind of ['key', 'value']) {
      cache[`past.${layer}.${kind}`] = new ort.Tensor('float32', new Float32Array(0), [
        1,
        dims.nKvHeads,
        0,
        dims.headDim,
      ]);
    }
  }
  return cache;
}

async function forward(tokens, position, cache) {
  const results = await session.run({
    input_ids: integers(tokens),
    position_ids: integers(tokens.map((_, i) => position + i)),
    ...cache,
  });
  const { logits, ...present } = results;
  const past = Object.fromEntries(
    Object.entries(present).map(([name, tensor]) => [name.replace('present', 'past'), tensor]),
  );
  return { logits: logits.data, cache: past };
}

function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; ++i) if (values[i] > values[best]) best = i;
  return best;
}

/** See wllama.mjs. */
export async function run({ prompt, newTokens, keep }) {
  let prefillMilliseconds = 0;
  let state = keep && rows?.prompt.length === prompt.length ? rows : undefined;
  const prefillTokens = state ? 0 : prompt.length;
  if (!state) {
    const start = performance.now();
    const { logits, cache } = await forward(prompt, 0, emptyCache());
    prefillMilliseconds = performance.now() - start;
    state = { prompt, cache, next: argmax(logits) };
    if (keep) rows = state;
  }
  let { cache, next } = state;
  const start = performance.now();
  for (let i = 0; i < newTokens; ++i) {
    const step = await forward([next], prompt.length + i, cache);
    cache = step.cache;
    next = argmax(step.logits);
  }
  return {
    prefill: { tokens: prefillTokens, milliseconds: prefillMilliseconds },
    decode: { tokens: newTokens, milliseconds: performance.now() - start },
  };
}

/** Logits after a prompt, to see that all runtimes compute the same model. */
export async function logits({ prompt }) {
  return Array.from((await forward(prompt, 0, emptyCache())).logits);
}

export async function unload() {
  await session.release();
}
