// Traces as files: saved with the attention rows if they are small enough, and opened again without
// a model.
import { batch } from '@preact/signals';
import type { AttentionStore } from '../figures/index.js';
import { emptyAttention } from './forward.js';
import { stopPlaying } from './play.js';
import {
  attention,
  clearProblem,
  hasLogits,
  live,
  liveTrace,
  report,
  trace,
  unpin,
  viewing,
} from './store.js';
import { parseTrace, type Trace } from './trace.js';

/** The most bytes of attention rows that go into a file. */
const attentionLimit = 4 * 2 ** 20;

/**
 * Rows of every head, `[layer][head][query][0..query]` without masked entries, as base64 of
 * float64.
 */
interface StoredAttention {
  readonly rows: number;
  readonly base64: string;
}

function toBase64(bytes: Uint8Array): string {
  let text = '';
  // In pieces: an argument list must not grow too long.
  for (let at = 0; at < bytes.length; at += 0x8000)
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

const fromBase64 = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

function storedAttention(from: Trace): StoredAttention | null {
  const { nLayers, nHeads } = from.model.config;
  const n = from.rows.length;
  const store = attention.value;
  const size = (nLayers * nHeads * n * (n + 1)) / 2;
  if (!store || n === 0 || size * 8 > attentionLimit) return null;
  const values = new Float64Array(size);
  let at = 0;
  for (let layer = 0; layer < nLayers; ++layer) {
    for (let head = 0; head < nHeads; ++head) {
      const matrix = store.matrix({ layer, head });
      for (let query = 0; query < n; ++query) {
        const row = matrix.row(query);
        if (!row) return null;
        values.set(row.subarray(0, query + 1), at);
        at += query + 1;
      }
    }
  }
  return { rows: n, base64: toBase64(new Uint8Array(values.buffer)) };
}

/** The trace on the page as the text of a file. */
export function traceFile(from: Trace): string {
  return `${JSON.stringify({ ...from, attention: storedAttention(from) }, null, 1)}\n`;
}

function restoredAttention(stored: unknown, from: Trace): AttentionStore {
  const { nLayers, nHeads } = from.model.config;
  const store = emptyAttention(from.model.config);
  const n = from.rows.length;
  const tokens = from.rows.map(({ id }) => id);
  const given = stored as StoredAttention | null | undefined;
  const bytes = typeof given?.base64 === 'string' ? fromBase64(given.base64) : undefined;
  if (n === 0 || bytes?.length !== nLayers * nHeads * n * (n + 1) * 4) {
    store.append(tokens, undefined);
    return store;
  }
  const values = new Float64Array(bytes.buffer);
  const data = new Float64Array(nLayers * nHeads * n * n);
  let at = 0;
  for (let map = 0; map < nLayers * nHeads; ++map) {
    for (let query = 0; query < n; ++query) {
      data.set(values.subarray(at, at + query + 1), (map * n + query) * n);
      at += query + 1;
    }
  }
  const layers = Array.from({ length: nLayers }, (_, layer) => layer);
  const shape = [nLayers, nHeads, n, n];
  store.append(tokens, {
    layers,
    firstPosition: 0,
    nRows: n,
    attention: { data, shape },
    stages: [],
  });
  return store;
}

let liveAttention: AttentionStore | undefined;

export async function openTrace(file: File): Promise<boolean> {
  const text = await file.text();
  const parsed = parseTrace(text);
  if (typeof parsed === 'string') {
    report('export', { kind: 'trace', fault: parsed });
    return false;
  }
  stopPlaying();
  const { attention: stored, ...shown } = parsed as Trace & { readonly attention?: unknown };
  batch(() => {
    if (viewing.value === undefined) {
      liveTrace.value = trace.value;
      liveAttention = attention.value;
    }
    clearProblem('export');
    trace.value = shown;
    attention.value = restoredAttention(stored, shown);
    viewing.value = file.name;
    unpin();
  });
  return true;
}

/** Back to the live session. */
export function closeTrace(): void {
  batch(() => {
    trace.value = liveTrace.value;
    attention.value = liveAttention;
    liveTrace.value = undefined;
    liveAttention = undefined;
    viewing.value = undefined;
    unpin();
    if (!live.value) hasLogits.value = false;
  });
}

/** A trace is known by its name. No checkpoint consists of JSON alone. */
export const isTraceFile = (file: File): boolean =>
  /\.json$/i.test(file.name) && !/config|tokenizer|index/i.test(file.name);
