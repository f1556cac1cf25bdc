// The first screen: a run that is really computed, either an example or the one in the address.
import { stateNow, type AddressState } from './address.js';
import { decodeGreedy, prefillAll, repeatRun } from './forward.js';
import { loadBuiltIn, startEngine } from './load.js';
import { examples } from './models.js';
import { setPrompt } from './prompt.js';
import { calls, example, pinnedPosition, rows, trace } from './store.js';

export async function openWith(state: AddressState | undefined): Promise<void> {
  const id = state?.model ?? 'stories260k';
  if (!(await startEngine()) || !(await loadBuiltIn(id))) return;
  if (state) {
    await setPrompt(state.prompt);
    if (state.rows.length > 0) await repeatRun(state.rows, state.prefilled);
    if (state.position !== null && state.position < rows.value.length)
      pinnedPosition.value = state.position;
  } else {
    await prefillAll();
    for (let step = 0; step < examples[id].decodes; ++step) await decodeGreedy();
  }
  example.value = {
    tokens: rows.value.length,
    milliseconds: calls.value.reduce((sum, { step }) => sum + step.milliseconds, 0),
    model: trace.value?.model.name ?? '',
  };
}

/** Starts a new engine after the last one ended, and repeats the run of a built-in model. */
export const restart = (): Promise<void> => openWith(stateNow());
