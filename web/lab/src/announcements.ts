// The live region announces each outcome. It is silent while playing: a voice cannot keep up.
import { effect, untracked } from '@preact/signals';
import { visibleToken } from './format.js';
import { text } from './i18n/index.js';
import { stoppedText } from './ui/job-progress.jsx';
import { announce, calls, live, playing, rows, stopped, trace } from './state/store.js';

export function announceOutcomes(): void {
  effect(() => {
    const kind = stopped.value;
    if (kind) untracked(() => announce(stoppedText(kind)));
  });
  let spoken:
    | {
        readonly calls: number;
        readonly rows: number;
        readonly verified: unknown;
        readonly model: unknown;
      }
    | undefined;
  effect(() => {
    const made = calls.value;
    const held = rows.value.length;
    const last = made.at(-1);
    const before = spoken;
    spoken = {
      calls: made.length,
      rows: held,
      verified: last?.verification,
      model: live.value?.model,
    };
    if (!trace.value || !before || playing.peek()) return;
    const t = text.peek();
    if (live.value && live.value.model !== before.model) {
      announce(t.said.loaded(trace.value.model.name));
    } else if (last && made.length > before.calls) {
      const newest = rows.value.at(-1);
      announce(
        last.tokens.length === 1 && newest
          ? t.said.token(visibleToken(newest.text), last.step.kvLen)
          : t.said.appended(
              t.timeline.phases[last.step.phase],
              last.tokens.length,
              last.step.kvLen,
            ),
      );
    } else if (last?.verification && last.verification !== before.verified) {
      announce(last.verification.bytesEqual ? t.said.verifiedEqual : t.said.verifiedDifferent);
    } else if (held < before.rows) {
      announce(held === 0 ? t.said.reset : t.said.forked(held));
    }
  });
}
