// The progress of a job that the user waits for, a button to stop it, and a note that it stopped.
import { text } from '../i18n/index.js';
import { busy, stopped, type Busy, type BusyKind } from '../state/store.js';
import { stop } from '../state/jobs.js';
import { Button } from './controls.jsx';

interface JobProgressProps {
  readonly kind: BusyKind;
  readonly label: (now: Busy) => string;
}

export function JobProgress({ kind, label }: JobProgressProps) {
  const t = text.value.job;
  const now = busy.value;
  if (now?.kind === kind) {
    const { done, total } = now;
    return (
      <div class="progress" data-testid={`progress-${kind}`}>
        <label>
          {label(now)}
          {/* Without a value it shows that something is running. */}
          <progress {...(total > 0 ? { value: done, max: total } : {})} />
        </label>
        <div>
          <Button onClick={stop}>{t.stop}</Button>
        </div>
      </div>
    );
  }
  return stopped.value === kind ? <p class="muted small">{t.stopped}</p> : null;
}
