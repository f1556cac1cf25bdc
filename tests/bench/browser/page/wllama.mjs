// wllama as its users call it: createCompletion with a text, its own timings.
import { Wllama } from '/peers/@wllama/wllama/esm/index.js';

let wllama;

export async function load({ url, threads, capacity }) {
  const blob = await (await fetch(url)).blob();
  wllama = new Wllama(
    { default: '/peers/@wllama/wllama/esm/wasm/wllama.wasm' },
    { suppressNativeLog: true },
  );
  const start = performance.now();
  await wllama.loadModel([blob], {
    n_threads: threads,
    n_ctx: capacity,
    n_batch: 512,
    n_gpu_layers: 0,
    n_parallel: 1,
    warmup: false,
  });
  const milliseconds = performance.now() - start;
  return { milliseconds, threads: wllama.isMultithread() ? wllama.getNumThreads() : 1 };
}

/**
 * A prompt and `newTokens` greedy tokens. With `keep` the prompt's rows stay for the next run with
 * the same prompt, which then only decodes.
 */
export async function run({ text, newTokens, keep }) {
  const { timings } = await wllama.createCompletion({
    prompt: text,
    max_tokens: newTokens,
    temperature: 0,
    ignore_eos: true,
    cache_prompt: keep,
  });
  return {
    prefill: { tokens: timings.prompt_n, milliseconds: timings.prompt_ms },
    decode: { tokens: timings.predicted_n, milliseconds: timings.predicted_ms },
  };
}

/** Text of the best token after a prompt. */
export async function best({ text }) {
  const { choices } = await wllama.createCompletion({
    prompt: text,
    max_tokens: 1,
    temperature: 0,
    ignore_eos: true,
    cache_prompt: false,
  });
  return choices[0].text;
}

export async function unload() {
  await wllama.exit();
}
