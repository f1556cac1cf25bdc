// kvlens as its users call it: the worker engine, timed from the page, so that messages count, and
// where a page decodes token by token also copies of logits. Bundled by build-page.mjs.
import { createEngine } from 'kvlens';

let engine;
let model;
let capacity;
let session;
let kept; // after a prompt run with `keep`: { length, next }
let others; // sessions whose caches store another type, by that, each with what it kept
let filled; // sessions of `cachedToken` by position: { target, next }

const timed = async (work) => {
  const start = performance.now();
  const value = await work();
  return { value, milliseconds: performance.now() - start };
};

function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; ++i) if (values[i] > values[best]) best = i;
  return best;
}

export async function load({ url, threads, level, ...options }) {
  const blob = await (await fetch(url)).blob();
  engine = await createEngine(
    level ? { threads, variant: threads > 1 ? `${level}-mt` : level } : { threads },
  );
  const { value, milliseconds } = await timed(() => engine.loadModel(blob));
  model = value;
  ({ capacity } = options);
  session = await model.createSession({ capacity });
  kept = undefined;
  others = {};
  filled = new Map();
  return { milliseconds, threads: engine.info.threads, variant: engine.info.variant };
}

export async function unload() {
  await engine.dispose();
}

/** `n` greedy tokens, each chosen by the page. */
async function decode(target, next, n, options) {
  for (let i = 0; i < n; ++i) next = argmax((await target.decode(next, options)).logits);
}

/**
 * `n` greedy tokens after `tokens`, as a stream. Returns the milliseconds of the calls inside the
 * worker.
 */
async function generate(tokens, n) {
  let milliseconds = 0;
  for await (const { step } of session.generate({
    tokens,
    maxNewTokens: n,
    eosTokens: [],
    temperature: 0,
  })) {
    milliseconds += step.milliseconds;
  }
  return milliseconds;
}

/**
 * A prompt and `newTokens` greedy tokens. With `keep` the prompt's rows stay for the next run with
 * the same prompt, which then only decodes.
 */
export async function run({ prompt, newTokens, keep }) {
  let prefill = { tokens: 0, milliseconds: 0 };
  let next;
  if (keep && kept?.length === prompt.length) {
    await session.truncate(kept.length);
    next = kept.next;
  } else {
    await session.reset();
    const { value, milliseconds } = await timed(() => session.prefill(prompt));
    prefill = { tokens: prompt.length, milliseconds };
    next = argmax(value.logits);
    kept = keep ? { length: prompt.length, next } : undefined;
  }
  // The cache holds the prompt; the token after it and those that follow are run.
  const { value, milliseconds } = await timed(() => generate([...prompt, next], newTokens));
  return {
    prefill,
    decode: { tokens: newTokens, milliseconds },
    core: { tokens: newTokens, milliseconds: value },
  };
}

/** `run` with a cache that stores keys and values as `kvDtype`. */
export async function runWith({ kvDtype, ...call }) {
  const own = [session, kept];
  others[kvDtype] ??= [await model.createSession({ capacity, kvDtype }), undefined];
  [session, kept] = others[kvDtype];
  try {
    return await run(call);
  } finally {
    others[kvDtype] = [session, kept];
    [session, kept] = own;
  }
}

/** Logits after a prompt, to see that all runtimes compute the same model. */
export async function logits({ prompt }) {
  await session.reset();
  kept = undefined;
  return Array.from((await session.prefill(prompt)).logits);
}

/**
 * Fills an empty session with the prompt's first `length` tokens and returns the best next token.
 */
const fill = async (target, prompt, length) =>
  argmax((await target.prefill(prompt.slice(0, length))).logits);

/**
 * Milliseconds a decoded token, the middle one of `newTokens` at position `position`, with the
 * cache. Each position has a session of its own, so that they can be measured by turns.
 */
export async function cachedToken({ prompt, position, newTokens }) {
  const length = position - newTokens / 2;
  let at = filled.get(position);
  if (at === undefined) {
    const target = await model.createSession({ capacity: length + newTokens });
    at = { target, next: await fill(target, prompt, length) };
    filled.set(position, at);
  }
  const { milliseconds } = await timed(() => decode(at.target, at.next, newTokens));
  await at.target.truncate(length);
  return milliseconds / newTokens;
}

/**
 * Milliseconds of a complete-prefix replay of `position` tokens: a decoded token's cost without the
 * cache.
 */
export async function replayedToken({ prompt, position }) {
  return (await timed(() => session.replay({ tokens: prompt.slice(0, position) }))).milliseconds;
}

/** Milliseconds a decoded token at `position` without and with attention capture, by turns. */
export async function evidenceCost({ prompt, position, newTokens, repetitions }) {
  kept = undefined;
  await session.reset();
  const length = position - newTokens / 2;
  const next = await fill(session, prompt, length);
  const results = { none: [], attention: [] };
  for (let i = 0; i < repetitions; ++i) {
    for (const capture of ['none', 'attention']) {
      const { milliseconds } = await timed(() => decode(session, next, newTokens, { capture }));
      results[capture].push(milliseconds / newTokens);
      await session.truncate(length);
    }
  }
  return results;
}
