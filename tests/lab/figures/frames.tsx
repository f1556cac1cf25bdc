// The page that frames.mjs opens: all figures of attention at once, fed row by row, with a clock on
// each part.
import { signal } from '@preact/signals';
import { createEngine, type Evidence } from 'kvlens';
import { render } from 'preact';
import {
  AttentionMap,
  AttentionStore,
  HeadTable,
  Thumbnails,
  TokenWeights,
  type HeadRef,
} from '../../../web/lab/src/figures/index.js';
import { visibleToken } from '../../../web/lab/src/format.js';
import { figures as en } from '../../../web/lab/src/i18n/en-figures.js';
import '../../../web/lab/src/styles/index.css';

const messages = en;
const mapStyle = { palette: 'cividis', scale: 'sqrt', hideSink: false } as const;
const head = signal<HeadRef>({ layer: 0, head: 0 });
const tokens = signal<readonly string[]>([]);

function Page({ store }: { store: AttentionStore }) {
  void store.revision.value;
  const at = store.length - 1;
  const common = { mapStyle, messages };
  return (
    <>
      <Thumbnails
        {...common}
        store={store}
        selected={head.value}
        onSelect={(chosen) => (head.value = chosen)}
      />
      <AttentionMap
        {...common}
        matrix={store.matrix(head.value)}
        head={head.value}
        source={store.source(head.value.layer)}
        tokens={tokens.value}
        pinned={null}
        onPin={() => {}}
      />
      <TokenWeights
        {...common}
        tokens={tokens.value}
        selected={at}
        outgoing={store.outgoing(head.value, at)}
        incoming={store.incoming(head.value, at)}
        head={head.value}
        onSelect={() => {}}
      />
      <HeadTable
        layer={head.value.layer}
        scores={store.scores(head.value.layer) ?? []}
        of={{ rows: store.rowsScored(head.value.layer), length: store.length }}
        selected={head.value}
        onSelect={(chosen) => (head.value = chosen)}
        messages={messages}
      />
    </>
  );
}

/** Milliseconds of each frame. */
export interface Frames {
  /** Into the history. */
  readonly append: number[];
  /** Of the components. */
  readonly render: number[];
  /** Of the canvases. */
  readonly draw: number[];
  /** From one frame to the next. */
  readonly interval: number[];
}

const nextFrame = () => new Promise<number>(requestAnimationFrame);
const nextTask = () => new Promise((resolve) => setTimeout(resolve));

/** One row: appended, rendered and drawn, each timed. */
async function timed(frames: Frames, change: () => void): Promise<void> {
  // Callbacks of a frame run in the order they were asked for, so that these two embrace those of
  // the figures.
  const frameStart = new Promise<number>((resolve) =>
    requestAnimationFrame(() => resolve(performance.now())),
  );
  const start = performance.now();
  change();
  const appended = performance.now();
  await Promise.resolve();
  await nextMicrotasks();
  const rendered = performance.now();
  const frameEnd = new Promise<number>((resolve) =>
    requestAnimationFrame(() => resolve(performance.now())),
  );
  frames.append.push(appended - start);
  frames.render.push(rendered - appended);
  frames.draw.push((await frameEnd) - (await frameStart));
}

/** Renders are microtasks, possibly of one another. */
async function nextMicrotasks(): Promise<void> {
  for (let i = 0; i < 8; ++i) await Promise.resolve();
}

function emptyFrames(): Frames {
  return { append: [], render: [], draw: [], interval: [] };
}

/** Notes every frame until it is stopped. */
function watchFrames(frames: Frames): () => void {
  let running = true;
  void (async () => {
    let last = await nextFrame();
    while (running) {
      const now = await nextFrame();
      frames.interval.push(now - last);
      last = now;
    }
  })();
  return () => (running = false);
}

/** One decode's evidence, deterministic: a sink, a previous token, and a tail. */
function rowEvidence(nLayers: number, nHeads: number, position: number): Evidence {
  const columns = position + 1;
  const data = new Float32Array(nLayers * nHeads * columns);
  for (let row = 0; row < nLayers * nHeads; ++row) {
    const tail = 0.4 / columns;
    for (let key = 0; key < columns; ++key)
      data[row * columns + key] = tail * ((key * (row + 3)) % 7) * 0.3;
    data[row * columns] = 0.3;
    data[row * columns + Math.max(0, position - 1 - (row % 5))] = 0.3;
  }
  return {
    layers: Array.from({ length: nLayers }, (_, layer) => layer),
    firstPosition: position,
    nRows: 1,
    attention: { data, shape: [nLayers, nHeads, 1, columns] },
    stages: [],
  };
}

/** 12 layers of 12 heads, grown to 1,024 positions; the last ones are timed. */
async function large(page: HTMLElement): Promise<Frames> {
  const [nLayers, nHeads, length, timedRows] = [12, 12, 1024, 90];
  const store = new AttentionStore({ nLayers, nHeads });
  for (let position = 0; position < length - timedRows; ++position) {
    store.append([position % 50], rowEvidence(nLayers, nHeads, position));
  }
  tokens.value = Array.from({ length: store.length }, (_, i) => `·word${i % 50}`);
  render(<Page store={store} />, page);
  for (let i = 0; i < 10; ++i) await nextFrame();
  const frames = emptyFrames();
  const stop = watchFrames(frames);
  while (store.length < length) {
    const evidence = rowEvidence(nLayers, nHeads, store.length);
    await timed(frames, () => {
      tokens.value = [...tokens.value, `·word${store.length % 50}`];
      store.append([store.length % 50], evidence);
    });
  }
  stop();
  render(null, page);
  return frames;
}

/** stories260K, decoded as fast as the worker and the frames allow. */
async function stories(page: HTMLElement): Promise<Frames> {
  const engine = await createEngine();
  const model = await engine.loadModel(
    new URL('/.build/fixtures/stories260k/stories260K-q8_0.gguf', location.href),
  );
  const session = await model.createSession();
  const store = new AttentionStore(model.config);
  const prompt = await model.tokenize('Once upon a time');
  store.append(prompt, (await session.prefill(prompt, { capture: 'attention' })).evidence);
  tokens.value = (await model.pieces(prompt)).map(visibleToken);
  render(<Page store={store} />, page);
  for (let i = 0; i < 10; ++i) await nextFrame();
  const frames = emptyFrames();
  const stop = watchFrames(frames);
  let rngState = 38n;
  while (store.length < 400) {
    const drawn = await session.sample({ temperature: 0.8 }, rngState);
    rngState = drawn.rngState;
    const { evidence } = await session.decode(drawn.draw.token, { capture: 'attention' });
    const [piece] = await model.pieces([drawn.draw.token]);
    await timed(frames, () => {
      tokens.value = [...tokens.value, visibleToken(piece ?? '')];
      store.append([drawn.draw.token], evidence);
    });
  }
  stop();
  render(null, page);
  await engine.dispose();
  return frames;
}

declare global {
  interface Window {
    measureFrames: Record<'large' | 'stories', () => Promise<Frames>>;
  }
}

await nextTask();
const page = document.getElementById('page')!;
window.measureFrames = { large: () => large(page), stories: () => stories(page) };
