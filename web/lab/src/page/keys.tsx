// The dialog of keyboard shortcuts, and the single-key shortcuts that it lists.
import { useEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';
import { text } from '../i18n/index.js';
import { shortcuts } from '../settings.js';
import {
  decodeGreedy,
  decodeSampled,
  obstacle,
  prefillAll,
  prefillNext,
  reset,
  verify,
} from '../state/forward.js';
import { play, stopPlaying } from '../state/play.js';
import { isLive, playing, promptTokens, rows, unpin } from '../state/store.js';
import { stop } from '../state/jobs.js';
import { Button } from '../ui/controls.jsx';
import { Icon } from '../ui/icons.jsx';

const open = signal(false);

export function showKeys(): void {
  open.value = true;
}

const can = (): boolean => isLive.value && obstacle() === undefined;

const actions: Readonly<Record<string, () => unknown>> = {
  p: () => isLive.value && promptTokens.value.length > 0 && prefillAll(),
  t: () => isLive.value && promptTokens.value.length > 0 && prefillNext(),
  g: () => can() && decodeGreedy(),
  s: () => can() && decodeSampled(),
  v: () => isLive.value && rows.value.length > 0 && verify(),
  r: () => isLive.value && reset(),
  ' ': () => (playing.value ? stopPlaying() : isLive.value && play()),
  '?': showKeys,
};

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest('input, textarea, select, [contenteditable]') !== null
  );
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || open.value)
    return;
  if (event.key === 'Escape') {
    stop();
    stopPlaying();
    unpin();
    return;
  }
  if (!shortcuts.value || isTyping(event.target)) return;
  // The space bar presses the control that has the focus.
  if (
    event.key === ' ' &&
    event.target instanceof HTMLElement &&
    event.target.closest('button, a, summary, [role]')
  )
    return;
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  void action();
}

export function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  const t = text.value;
  useEffect(() => {
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  useEffect(() => {
    if (open.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open.value]);
  const row = (key: string, meaning: string) => (
    <div key={key}>
      <dt>
        <kbd>{key}</kbd>
      </dt>
      <dd>{meaning}</dd>
    </div>
  );
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="keys-heading"
      onClose={() => (open.value = false)}
    >
      <div class="dialog-head">
        <h2 id="keys-heading">{t.keys.heading}</h2>
        <Button kind="plain" aria-label={t.close} onClick={() => (open.value = false)}>
          <Icon name="cross" />
        </Button>
      </div>
      <dl class="key-list">
        {Object.entries(t.keys.list).map(([key, meaning]) =>
          row(key === 'Space' ? t.keys.space : key, meaning),
        )}
      </dl>
      <h3>{t.keys.figures}</h3>
      <dl class="key-list">
        {row(t.keys.arrows, t.keys.arrowsText)}
        {row(t.keys.enter, t.keys.enterText)}
        {row(t.keys.pointer, t.keys.pointerText)}
      </dl>
      <label class="switch">
        <input
          type="checkbox"
          checked={shortcuts.value}
          onChange={(event) => (shortcuts.value = event.currentTarget.checked)}
        />
        {t.keys.enabled}
      </label>
      <p class="muted small">{t.keys.enabledHint}</p>
    </dialog>
  );
}
