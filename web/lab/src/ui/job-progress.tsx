// The progress of a job that the user waits for, a button to stop it, and a note that it stopped.
import { text } from '../i18n/index.js';
import { busy, rows, stopped, type Busy, type BusyKind } from '../state/store.js';
import { stop } from '../state/jobs.js';
import { Button } from './controls.jsx';

/** What a stopped job leaves behind, in words. */
export function stoppedText(kind: BusyKind): string {
  const t = text.value.job;
  if (kind === 'replays' || kind === 'recomputeAll') return t.stoppedPartly;
  // A prefill clears the cache first.
  return kind === 'prefill' && rows.value.length === 0 ? t.stoppedEmpty : t.stopped;
}

interface JobProgressProps {
  readonly kind: BusyKind;
  /** False for a job that must not end half-way. */
  readonly stoppable?: boolean;
  readonly label: (now: Busy) => string;
}

export function JobProgress({ kind, stoppable = true, label }: JobProgressProps) {
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
        {stoppable && (
          <div>
            <Button onClick={stop}>{t.stop}</Button>
          </div>
        )}
      </div>
    );
  }
  return stopped.value === kind ? <p class="muted small">{stoppedText(kind)}</p> : null;
}
