// Starting the engine and loading models. A load that fails leaves the page as it was.
import { batch } from '@preact/signals';
import { createEngine, type Engine, type EngineModel, type ModelSource } from 'kvlens';
import { emptyAttention } from './forward.js';
import { examples, storiesName, storiesUrl, toyConfig, toyName, toySeed } from './models.js';
import { stopPlaying } from './play.js';
import { setPrompt } from './prompt.js';
import {
  attention,
  cell,
  cleared,
  clearProblem,
  engine,
  forgetRows,
  hasLogits,
  head,
  live,
  liveTrace,
  loading,
  promptText,
  report,
  rngState,
  sampling,
  seed,
  trace,
  viewing,
} from './store.js';
import { TRACE_SCHEMA, TRACE_VERSION, type BuiltInId } from './trace.js';
import { asProblem, run } from './jobs.js';

/** The most that 32-bit memory can hold. Once the headers are read, the engine knows the limit. */
const memoryLimit = 2 ** 32;

export async function startEngine(): Promise<boolean> {
  clearProblem('engine');
  try {
    const started = await createEngine();
    engine.value = started;
    void started.ended.then(() => {
      if (engine.value !== started) return;
      stopPlaying();
      batch(() => {
        engine.value = undefined;
        live.value = undefined;
        hasLogits.value = false;
        report('engine', { kind: 'engine_ended' });
      });
    });
    return true;
  } catch (error) {
    report('engine', asProblem(error));
    return false;
  }
}

type Loader = (engine: Engine, signal: AbortSignal) => Promise<EngineModel>;

async function load(name: string, builtIn: BuiltInId | null, loader: Loader): Promise<boolean> {
  const host = engine.value;
  if (!host) return false;
  stopPlaying();
  const loaded = await run('load', 'model', async ({ signal }) => {
    loading.value = { name, progress: undefined };
    const model = await loader(host, signal);
    const compute = builtIn === 'toy' ? 'f64' : 'f32';
    const session = await model.createSession({ compute }).catch(async (error: unknown) => {
      await model.dispose();
      throw error;
    });
    const previous = live.value;
    const { config, info } = model;
    batch(() => {
      live.value = { model, session, builtIn };
      trace.value = {
        schema: TRACE_SCHEMA,
        version: TRACE_VERSION,
        module: {
          version: host.info.version,
          variant: host.info.variant,
          threads: host.info.threads,
        },
        model: {
          name: builtIn === null ? info.name : name,
          builtIn,
          format: info.format,
          architecture: info.architecture,
          hash: info.hash,
          nParameters: info.nParameters,
          parameterBytes: info.parameterBytes,
          dtypes: info.dtypes,
          config,
          compute,
          capacity: session.capacity,
          hasTokenizer: model.tokenizer !== undefined,
        },
        prompt: '',
        promptTokens: [],
        sampling: sampling.value,
        seed: String(seed.value),
        rows: [],
        calls: [],
        forks: [],
        replays: [],
      };
      viewing.value = undefined;
      liveTrace.value = undefined;
      attention.value = emptyAttention(config);
      cleared.value = undefined;
      rngState.value = undefined;
      // Another model has other heads.
      const { layer, kvHead } = cell.value;
      if (layer >= config.nLayers || kvHead >= config.nKvHeads)
        cell.value = { layer: 0, kvHead: 0 };
      const known = head.value.head === 'mean' || head.value.head < config.nHeads;
      if (head.value.layer >= config.nLayers || !known) head.value = { layer: 0, head: 0 };
      forgetRows();
      clearProblem('prompt');
    });
    await previous?.session.dispose();
    await previous?.model.dispose();
  });
  loading.value = undefined;
  return loaded;
}

const showProgress =
  (name: string) =>
  (progress: {
    readonly stage: 'open' | 'load' | 'ready';
    readonly bytes: number;
    readonly total: number;
  }): void => {
    loading.value = { name, progress };
  };

export async function loadBuiltIn(id: BuiltInId): Promise<boolean> {
  const loaded =
    id === 'toy'
      ? await load(toyName, id, (host) =>
          host.randomModel(toyConfig, { seed: toySeed, dtype: 'f64' }),
        )
      : await load(storiesName, id, (host, signal) =>
          host.loadModel(storiesUrl(), { signal, onProgress: showProgress(storiesName) }),
        );
  if (loaded) await setPrompt(examples[id].prompt);
  return loaded;
}

async function loadSource(name: string, source: ModelSource): Promise<boolean> {
  const loaded = await load(name, null, (host, signal) =>
    host.loadModel(source, { signal, onProgress: showProgress(name) }),
  );
  // The typed text stays. A model without a tokenizer starts with an id that every vocabulary has.
  if (loaded) await setPrompt(live.value?.model.tokenizer ? promptText.value : '0');
  return loaded;
}

function refuseIfTooLarge(bytes: number): boolean {
  if (bytes <= memoryLimit) return false;
  report('model', { kind: 'download_too_large', bytes, limit: memoryLimit });
  return true;
}

export async function loadFiles(files: readonly File[]): Promise<boolean> {
  const [first] = files;
  if (!first || refuseIfTooLarge(files.reduce((sum, file) => sum + file.size, 0))) return false;
  return loadSource(first.name, files.length === 1 ? first : files);
}

/** The size that the server announces, or 0 if it does not. */
async function announcedBytes(url: URL): Promise<number> {
  try {
    const response = await fetch(url, { method: 'HEAD' });
    return response.ok ? Number(response.headers.get('Content-Length') ?? 0) : 0;
  } catch {
    // The load itself will report the problem with the address.
    return 0;
  }
}

export async function loadUrl(address: string): Promise<boolean> {
  clearProblem('model');
  let url: URL;
  try {
    url = new URL(address, document.baseURI);
  } catch (error) {
    report('model', asProblem(error));
    return false;
  }
  if (refuseIfTooLarge(await announcedBytes(url))) return false;
  return loadSource(url.pathname.split('/').at(-1) ?? url.href, url);
}
