// Everything on the page as files, traces opened again, and a link to the state.
import { useRef, useState } from 'preact/hooks';
import { workCsv } from '../figures/index.js';
import { text } from '../i18n/index.js';
import { addressNow } from '../state/address.js';
import { asProblem } from '../state/jobs.js';
import { announce, clearProblem, live, report, trace, viewing } from '../state/store.js';
import { callsCsv, candidatesCsv, tokensCsv } from '../state/tables.js';
import { closeTrace, openTrace, traceFile } from '../state/trace-files.js';
import { Button, ProblemAt } from '../ui/controls.jsx';
import { download } from '../ui/download.js';
import { Icon } from '../ui/icons.jsx';
import { workPoints } from './work-section.jsx';

/** Says where the numbers come from while a trace from a file is shown. */
export function ViewingBanner() {
  const t = text.value.files;
  const name = viewing.value;
  const shown = trace.value;
  if (name === undefined || !shown) return null;
  return (
    <div class="banner" role="status" data-testid="viewing">
      <p>
        {t.viewing(name, shown.model.name)}{' '}
        <span class="muted">{t.modelHash(shown.model.hash)}</span>
      </p>
      <Button onClick={closeTrace}>{t.back}</Button>
    </div>
  );
}

/** How long the button says that the link was copied. */
const COPIED_MILLISECONDS = 3000;

function CopyLink() {
  const t = text.value.files;
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    clearProblem('export');
    try {
      await navigator.clipboard.writeText(addressNow());
    } catch (error) {
      report('export', asProblem(error));
      return;
    }
    announce(t.copied);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MILLISECONDS);
  };
  return (
    <Button kind="plain" onClick={copy}>
      {copied && <Icon name="check" />}
      {copied ? t.copied : t.copyLink}
    </Button>
  );
}

export function FilesSection() {
  const t = text.value.files;
  const input = useRef<HTMLInputElement>(null);
  const shown = trace.value;
  const table = (name: string, label: string, csv: () => string) => (
    <Button
      unavailable={shown ? undefined : text.value.evidence.empty}
      onClick={() => download(`${name}.csv`, csv(), 'text/csv')}
    >
      {label}
    </Button>
  );
  return (
    <section class="block" aria-labelledby="files-heading" id="files">
      <h2 id="files-heading">{t.heading}</h2>
      <p class="about">{t.about}</p>
      <div class="buttons">
        <Button
          kind="primary"
          unavailable={shown ? undefined : text.value.evidence.empty}
          onClick={() =>
            shown && download('kvlens-trace.json', traceFile(shown), 'application/json')
          }
        >
          {t.trace}
        </Button>
        {table('calls', t.calls, () => (shown ? callsCsv(shown) : ''))}
        {table('tokens', t.tokens, () => (shown ? tokensCsv(shown) : ''))}
        {table('candidates', t.candidates, () => (shown ? candidatesCsv(shown) : ''))}
        {table('work', t.work, () => workCsv(workPoints.value, text.value.figures))}
      </div>
      <div class="buttons">
        <Button onClick={() => input.current?.click()}>{t.openTrace}</Button>
        <input
          ref={input}
          type="file"
          accept=".json,application/json"
          hidden
          data-testid="trace-file"
          onChange={(event) => {
            const [file] = event.currentTarget.files ?? [];
            event.currentTarget.value = '';
            if (file) void openTrace(file);
          }}
        />
        {live.value?.builtIn && viewing.value === undefined && <CopyLink />}
      </div>
      <ProblemAt site="export" />
    </section>
  );
}
