// The prompt: text or ids, and the tokens they become.
import { useId } from 'preact/hooks';
import { text } from '../i18n/index.js';
import { visibleToken } from '../format.js';
import { prefillAll, prefillNext } from '../state/forward.js';
import { setPrompt } from '../state/prompt.js';
import { isLive, pending, promptText, promptTokens, rows, trace } from '../state/store.js';
import { Button, ProblemAt } from '../ui/controls.jsx';
import { JobProgress } from '../ui/job-progress.jsx';
import { Piece } from '../ui/token-chip.jsx';

function Chips() {
  const t = text.value.prompt;
  return (
    <ul class="chips" aria-label={t.tokens(promptTokens.value.length)} data-testid="prompt-chips">
      {promptTokens.value.map((token, index) => (
        <li key={index} class="chip chip-plain" title={t.token(visibleToken(token.text), token.id)}>
          <Piece text={token.text} />
          <span class="chip-id">{token.id}</span>
        </li>
      ))}
    </ul>
  );
}

/** Says that the cache holds other text than this prompt, so that decoding does not continue it. */
function Difference() {
  const held = rows.value;
  const prompt = promptTokens.value;
  if (!isLive.value || held.length === 0 || prompt.length === 0 || pending.value.length > 0)
    return null;
  const differing = prompt.findIndex(({ id }, index) => held[index]?.id !== id);
  if (differing < 0) return null;
  return (
    <p class="small note" data-testid="prompt-differs">
      {text.value.prompt.differs(differing, prompt.length)}
    </p>
  );
}

export function PromptPanel() {
  const t = text.value;
  const field = useId();
  const shown = trace.value?.model;
  const n = promptTokens.value.length;
  const filled = rows.value.length > 0;
  const tooLong = shown && n > shown.capacity ? t.prompt.tooLong(n, shown.capacity) : undefined;
  const unavailable = !isLive.value
    ? t.run.why.not_live
    : (tooLong ?? (n === 0 ? t.prompt.empty : undefined));
  return (
    <section class="panel" aria-labelledby="prompt-heading" id="prompt">
      <h2 id="prompt-heading">{t.prompt.heading}</h2>
      <div class="field">
        <label for={field}>{shown?.hasTokenizer === false ? t.prompt.ids : t.prompt.text}</label>
        <textarea
          id={field}
          class="input"
          rows={2}
          spellcheck={false}
          value={promptText.value}
          onInput={(event) => void setPrompt(event.currentTarget.value)}
        />
      </div>
      {shown?.hasTokenizer === false && (
        <p class="muted small">{t.prompt.idsHint(shown.config.vocabSize)}</p>
      )}
      <Chips />
      <p class="muted small">
        {t.prompt.tokens(n)}
        {pending.value.length > 0 && ` · ${t.prompt.left(pending.value.length)}`}
      </p>
      <div class="buttons">
        <Button kind="primary" unavailable={unavailable} onClick={prefillAll}>
          {filled ? t.prompt.again : t.prompt.all}
        </Button>
        <Button unavailable={unavailable} title={t.prompt.oneHint} onClick={prefillNext}>
          {filled && pending.value.length === 0 ? t.prompt.oneAgain : t.prompt.one}
        </Button>
      </div>
      <Difference />
      {tooLong !== undefined && <p class="small">{tooLong}</p>}
      <JobProgress kind="prefill" label={({ done, total }) => t.prompt.working(done, total)} />
      <ProblemAt site="prompt" />
    </section>
  );
}
