// Decodes one token after another at the chosen speed.
import { signal } from '@preact/signals';
import { decodeGreedy, decodeSampled, obstacle, prefillNext } from './forward.js';
import { currentCall, live, pending, playing, playSampled, rows, speed } from './store.js';

/** Why playing stopped by itself. */
export const ending = signal<'eos' | 'full' | undefined>(undefined);

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    // A frame at least, so that every token is drawn.
    if (milliseconds < 17) requestAnimationFrame(() => resolve());
    else setTimeout(resolve, milliseconds);
  });

function endsText(id: number | undefined): boolean {
  return id !== undefined && (live.value?.model.tokenizer?.eosTokens.includes(id) ?? false);
}

async function step(): Promise<boolean> {
  if (pending.value.length > 0 || rows.value.length === 0) return prefillNext();
  if (obstacle() === 'full') {
    ending.value = 'full';
    return false;
  }
  // A text that has ended is not decoded any further: its last token is the end token, or the next
  // one would be.
  const next = playSampled.value ? rows.value.at(-1)?.id : currentCall.value?.candidates[0]?.token;
  if (endsText(next)) {
    ending.value = 'eos';
    return false;
  }
  return playSampled.value ? decodeSampled() : decodeGreedy();
}

export async function play(): Promise<void> {
  if (playing.value) return;
  playing.value = true;
  ending.value = undefined;
  while (playing.value) {
    const start = performance.now();
    if (!(await step())) break;
    await pause(1000 / speed.value - (performance.now() - start));
  }
  playing.value = false;
}

export function stopPlaying(): void {
  playing.value = false;
}
