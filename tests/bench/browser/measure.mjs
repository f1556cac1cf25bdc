// The measurements of one number of threads. All entries are loaded, then take turns, so that
// whatever the machine does meanwhile falls on all of them.
import { basename } from 'node:path';

import { modelFile } from './cache.mjs';
import { Entry, weightsOf } from './entries.mjs';
import { shape } from './shape.mjs';
import { cosine } from './statistics.mjs';
import { promptTokens, tokenOfText, tokenText } from './weights.mjs';

export const prefillTokens = 256;
/** Decodes are centred on these positions. */
export const positions = { short: 64, long: 2048 };
/** What caches of long decodes store beside floats. */
export const kvDtypes = ['bf16', 'q8_0'];
const capacity = 2304;

const prompt = (length) => {
  const tokens = promptTokens(length);
  return { prompt: tokens, text: tokens.map(tokenText).join('') };
};

/** Which entries a run has, as `[runtime, weights]`. */
function plan({ runtimes, quick }) {
  return runtimes
    .flatMap((runtime) => weightsOf[runtime].map((weights) => [runtime, weights]))
    .filter(([, weights]) => !(quick && weights === 'f32'));
}

/**
 * At 2,048 positions wllama takes minutes to get there, so it is measured once, where it is
 * fastest.
 */
function isMeasuredLong({ runtime, weights, threads }, { quick }) {
  if (runtime === 'kvlens') return true;
  if (quick || weights === 'f32') return false;
  return runtime === 'onnxruntime-web' || (weights === 'q8_0' && threads === 1);
}

const addRate = (entry, name, { tokens, milliseconds }) => {
  if (tokens > 0) entry.add(name, (tokens * 1000) / milliseconds);
};

async function measureShort(entry) {
  // wllama trips over some made-up token's text in longer answers.
  const newTokens = entry.runtime === 'wllama' ? 32 : 64;
  const prefilled = await entry.call('run', {
    ...prompt(prefillTokens),
    newTokens: 1,
    keep: false,
  });
  if (prefilled) addRate(entry, 'prefill', prefilled.prefill);
  const decoded = await entry.call('run', {
    ...prompt(positions.short - newTokens / 2),
    newTokens,
    keep: false,
  });
  if (decoded) addRate(entry, 'decode', decoded.decode);
  if (decoded?.core) addRate(entry, 'decodeCore', decoded.core);
}

async function measureLong(entry) {
  const newTokens = 64;
  const call = { ...prompt(positions.long - newTokens / 2), newTokens, keep: true };
  const result = await entry.call('run', call);
  if (result) addRate(entry, 'decodeLong', result.decode);
  if (entry.runtime !== 'kvlens') return;
  for (const kvDtype of kvDtypes) {
    const stored = await entry.call('runWith', { ...call, kvDtype });
    if (stored) addRate(entry, `decodeLong, ${kvDtype}`, stored.decode);
  }
}

/**
 * Whether the runtimes compute the same model, in a note for the report: a graph that is wrong
 * would be measured in vain. wllama gives no logits, but its best token has to be (next to) the
 * best by ours.
 */
async function compareLogits(entries) {
  for (const reference of entries.filter(({ runtime }) => runtime === 'kvlens')) {
    const expected = await reference.call('logits', prompt(16));
    if (!expected) continue;
    for (const entry of entries) {
      if (entry.runtime === 'onnxruntime-web' && reference.weights === 'q8_0') {
        const actual = await entry.call('logits', prompt(16));
        if (actual)
          entry.note = `cosine of its logits to kvlens' q8_0: ${cosine(expected, actual).toFixed(5)}`;
      }
      if (entry.runtime === 'wllama' && reference.weights === entry.weights) {
        const text = await entry.call('best', prompt(16));
        if (text === undefined) continue;
        const logit = expected[tokenOfText(text)];
        const above = expected.filter((value) => value > logit).length;
        entry.note = `its best token is number ${above + 1} by kvlens' logits`;
      }
    }
  }
}

/** kvlens' load of a file against the copy of its bytes, by turns, each in a fresh page. */
async function measureLoad(sessions, probe, entry, loadOptions, repetitions) {
  const url = `/models/${basename(modelFile(entry.weights))}`;
  const probePage = await sessions.kvlens.openPage('/page/probe.mjs');
  for (let i = 0; i < repetitions && !entry.failure; ++i) {
    const { slices, stream, reused, fromMemory } = await probePage.call('copy', { url });
    probe.add('copy', Math.min(slices, stream, reused));
    probe.add('copyFromMemory', fromMemory);
    const again = new Entry(entry.runtime, entry.weights, entry.threads);
    await again.load(sessions.kvlens, loadOptions);
    if (again.failure) entry.failure = again.failure;
    else entry.add('load', again.samples.load[0]);
    await again.close();
  }
  await probePage.close();
}

/**
 * Measures with `threads` threads. `sessions` has an open browser by runtime. Returns the entries
 * and the probe.
 */
export async function measure(sessions, threads, options) {
  const { repetitions, level } = options;
  const loadOptions = { capacity, shape, level };
  const log = (text) => console.log(`[${threads} thread${threads === 1 ? '' : 's'}] ${text}`);
  const entries = plan(options).map(([runtime, weights]) => new Entry(runtime, weights, threads));
  // Its samples: `bandwidth`, `int8`, `copy`, `copyFromMemory`.
  const probe = new Entry('probe', '', threads);
  const probeSession = sessions.kvlens ?? Object.values(sessions)[0];
  const probePage = await probeSession.openPage('/page/probe.mjs');
  await probePage.call('load', { threads });

  for (const entry of entries) {
    if (!sessions[entry.runtime]) {
      entry.failure = options.unavailable[entry.runtime];
      continue;
    }
    log(`loading ${entry.runtime} ${entry.weights}`);
    await entry.load(sessions[entry.runtime], loadOptions);
    // Engines optimise code while it runs, on cores that it needs: the first calls are not what is
    // asked about.
    for (const length of [prefillTokens, positions.short]) {
      await entry.call('run', { ...prompt(length), newTokens: 8, keep: false });
    }
  }
  for (let i = 0; i < repetitions; ++i) {
    log(`repetition ${i + 1} of ${repetitions}`);
    for (const entry of entries) {
      const { bandwidth, int8 } = await probePage.call('run');
      probe.add('bandwidth', bandwidth);
      probe.add('int8', int8);
      await measureShort(entry);
    }
  }
  const long = entries.filter((entry) => isMeasuredLong(entry, options));
  for (let i = 0; i < repetitions && long.length > 0; ++i) {
    log(`decode at ${positions.long} positions, repetition ${i + 1} of ${repetitions}`);
    for (const entry of long) await measureLong(entry);
  }
  if (threads === 1) {
    await compareLogits(entries);
    const loaded = entries.find(
      ({ runtime, weights }) => runtime === 'kvlens' && weights === 'q8_0',
    );
    if (loaded && !loaded.failure) {
      log('load against copy');
      await measureLoad(sessions, probe, loaded, loadOptions, repetitions);
    }
  }
  await probePage.close();
  for (const entry of entries) await entry.close();
  return { threads, entries, probe };
}
