// The state of a built-in model in the page's address: a link shows the same run, computed anew.
import { effect } from '@preact/signals';
import { builtInIds } from './models.js';
import { live, liveTrace, playing, promptText, sampling, seed, trace, viewing } from './store.js';
import type { BuiltInId } from './trace.js';

export interface AddressState {
  readonly model: BuiltInId;
  readonly prompt: string;
  /** Ids of the rows; the first `prefilled` of them by one prefill. */
  readonly rows: readonly number[];
  readonly prefilled: number;
}

const samplingKeys = ['temperature', 'topK', 'topP', 'minP', 'repetitionPenalty'] as const;

/**
 * What the address asks for; undefined where it asks for nothing. Settings of sampling are taken
 * over.
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
  const [prefilled = '', ids = ''] = (query.get('rows') ?? '').split('~');
  return {
    model,
    prompt: query.get('prompt') ?? '',
    rows: /^\d+(\.\d+)*$/.test(ids) ? ids.split('.').map(Number) : [],
    prefilled: Number(prefilled) || 0,
  };
}

/**
 * What would have to be asked for to have the live run as it is; undefined for a model of one's
 * own.
 */
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
  };
}

function addressOf(): string {
  const state = stateNow();
  if (!state) return location.pathname + location.hash;
  const query = new URLSearchParams({ model: state.model, prompt: state.prompt });
  for (const key of samplingKeys) query.set(key, String(sampling.value[key]));
  query.set('seed', String(seed.value));
  if (state.rows.length > 0) query.set('rows', `${state.prefilled}~${state.rows.join('.')}`);
  return `${location.pathname}?${query.toString()}${location.hash}`;
}

/**
 * Keeps the address in step with the page, a little later: browsers limit how often it may change.
 */
export function followAddress(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    if (viewing.value !== undefined || playing.value || !trace.value || !live.value) return;
    const address = addressOf();
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(history.state, '', address), 300);
  });
}
