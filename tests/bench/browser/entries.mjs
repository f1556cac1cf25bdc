// What is measured: a runtime with weights, and how it stands. An entry that fails says why in its
// row and leaves the rest of the run alone.
import { basename } from 'node:path';

import { missingBuild } from './build-page.mjs';
import { installPeer, modelFile } from './cache.mjs';

const scripts = {
  kvlens: '/kvlens/kvlens.js',
  wllama: '/page/wllama.mjs',
  'onnxruntime-web': '/page/onnxruntime.mjs',
};
const peerPackages = { wllama: '@wllama/wllama', 'onnxruntime-web': 'onnxruntime-web' };
export const weightsOf = {
  kvlens: ['q8_0', 'q4_0'],
  wllama: ['q8_0', 'q4_0'],
  'onnxruntime-web': ['int8', 'f32'], // its fastest prefill and its fastest decode
};

/** `{ runtime: why it cannot be measured }`, after installing what can be installed. */
export function unavailable(options) {
  const reasons = options.runtimes.map((runtime) => [
    runtime,
    runtime === 'kvlens' ? missingBuild(options) : installPeer(peerPackages[runtime]),
  ]);
  return Object.fromEntries(reasons.filter(([, reason]) => reason !== undefined));
}

const timeoutMinutes = 6;

export class Entry {
  runtime;
  weights;
  threads;
  /** Why it is measured no further. */
  failure;
  /** Measurements by name, each a list with one value a repetition. */
  samples = {};
  info = {};
  peakMemory = 0;
  /** Anything else to report. */
  note;
  #page;

  constructor(runtime, weights, threads) {
    Object.assign(this, { runtime, weights, threads });
  }

  get title() {
    return `${this.runtime} ${this.weights}, ${this.threads} thread${this.threads === 1 ? '' : 's'}`;
  }

  /** Runs `work` unless something failed before; what it throws becomes the failure. */
  async #attempt(work) {
    if (this.failure) return undefined;
    let timer;
    const timeout = new Promise((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no answer in ${timeoutMinutes} minutes`)),
        timeoutMinutes * 60_000,
      );
    });
    try {
      return await Promise.race([work(), timeout]);
    } catch (error) {
      this.failure = error.message.split('\n')[0];
      console.log(`${this.title}: ${this.failure}`);
      await this.close(); // it may still be computing, at the expense of the others
      return undefined;
    } finally {
      clearTimeout(timer);
      this.peakMemory = Math.max(this.peakMemory, this.#page?.peakMemory() ?? 0);
    }
  }

  async load(session, options) {
    await this.#attempt(async () => {
      const url = `/models/${basename(modelFile(this.weights))}`;
      this.#page = await session.openPage(scripts[this.runtime]);
      this.info = await this.#page.call('load', { url, threads: this.threads, ...options });
      this.add('load', this.info.milliseconds);
      if (this.info.threads !== this.threads) {
        throw new Error(`runs ${this.info.threads} threads instead of ${this.threads}`);
      }
    });
  }

  call(method, options) {
    return this.#attempt(() => this.#page.call(method, options));
  }

  add(name, value) {
    (this.samples[name] ??= []).push(value);
  }

  async close() {
    await this.#page?.close();
    this.#page = undefined;
  }
}
