// The state of the page in its address: a link repeats the same run of a built-in model, and shows
// the same head, position and language.
import { effect } from '@preact/signals';
import { builtInIds } from './models.js';
import { locale } from '../settings.js';
import {
  cell,
  head,
  live,
  liveTrace,
  pinnedPosition,
  playing,
  promptText,
  sampling,
  seed,
  trace,
  viewing,
} from './store.js';
import type { BuiltInId } from './trace.js';

export interface AddressState {
  readonly model: BuiltInId;
  readonly prompt: string;
  /** Ids of the rows; the first `prefilled` of them by one prefill. */
  readonly rows: readonly number[];
  readonly prefilled: number;
  /** The selected position; null follows the newest token. */
  readonly position: number | null;
}

const samplingKeys = ['temperature', 'topK', 'topP', 'minP', 'repetitionPenalty'] as const;

/** Two numbers as `layer.head`; the second may be a word. */
function pairIn(query: URLSearchParams, name: string): readonly [number, string] | undefined {
  const [, layer, second] = /^(\d{1,4})\.(\d{1,4}|mean)$/.exec(query.get(name) ?? '') ?? [];
  return layer === undefined || second === undefined ? undefined : [Number(layer), second];
}

/**
 * The run that the address asks for, or undefined if it asks for none. Settings of sampling, the
 * heads and the language take effect at once.
 */
export function readAddress(): AddressState | undefined {
  const query = new URLSearchParams(location.search);
  const model = builtInIds.find((id) => id === query.get('model'));
  if (!model) return undefined;
  const settings = { ...sampling.value };
  for (const key of samplingKeys) {
    const value = Number(query.get(key) ?? NaN);
    if (Number.isFinite(value)) settings[key] = value;
  }
  sampling.value = settings;
  const seedText = query.get('seed') ?? '';
  if (/^\d{1,20}$/.test(seedText)) seed.value = BigInt.asUintN(64, BigInt(seedText));
  const language = query.get('lang');
  if (language === 'en' || language === 'ru') locale.value = language;
  const attentionHead = pairIn(query, 'head');
  if (attentionHead) {
    const [layer, of] = attentionHead;
    head.value = { layer, head: of === 'mean' ? 'mean' : Number(of) };
  }
  const cacheHead = pairIn(query, 'kv');
  if (cacheHead && cacheHead[1] !== 'mean')
    cell.value = { layer: cacheHead[0], kvHead: Number(cacheHead[1]) };
  const position = query.get('position') ?? '';
  const [prefilled = '', ids = ''] = (query.get('rows') ?? '').split('~');
  return {
    model,
    prompt: query.get('prompt') ?? '',
    rows: /^\d+(\.\d+)*$/.test(ids) ? ids.split('.').map(Number) : [],
    prefilled: Number(prefilled) || 0,
    position: /^\d{1,9}$/.test(position) ? Number(position) : null,
  };
}

/** What would bring back the live run as it is. A user's own model cannot be asked for. */
export function stateNow(): AddressState | undefined {
  const run = liveTrace.value ?? trace.value;
  const model = run?.model.builtIn;
  if (!model) return undefined;
  const [first] = run.rows;
  return {
    model,
    prompt: promptText.value,
    rows: run.rows.map(({ id }) => id),
    prefilled: first ? run.rows.filter(({ call }) => call === first.call).length : 0,
    position: pinnedPosition.value,
  };
}

/** The address of the state as it is now. */
export function addressNow(): string {
  const address = new URL(location.href);
  const state = stateNow();
  address.search = state ? queryOf(state).toString() : '';
  return address.href;
}

function queryOf(state: AddressState): URLSearchParams {
  const query = new URLSearchParams({ model: state.model, prompt: state.prompt });
  for (const key of samplingKeys) query.set(key, String(sampling.value[key]));
  query.set('seed', String(seed.value));
  if (state.rows.length > 0) query.set('rows', `${state.prefilled}~${state.rows.join('.')}`);
  query.set('head', `${head.value.layer}.${head.value.head}`);
  query.set('kv', `${cell.value.layer}.${cell.value.kvHead}`);
  if (state.position !== null) query.set('position', String(state.position));
  query.set('lang', locale.value);
  return query;
}

/**
 * Keeps the address in step with the page, a little later: browsers limit how often it may change.
 */
export function followAddress(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    if (viewing.value !== undefined || playing.value || !trace.value || !live.value) return;
    const address = addressNow();
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(history.state, '', address), 300);
  });
}
