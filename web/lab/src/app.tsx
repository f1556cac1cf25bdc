// The page: controls at the side, and beside them everything they show.
import { useEffect, useState } from 'preact/hooks';
import { text } from './i18n/index.js';
import { AttentionSection } from './page/attention-section.jsx';
import { BreakSection } from './page/break-section.jsx';
import { DecodePanel, MiniBar } from './page/decode-panel.jsx';
import { Evidence } from './page/evidence.jsx';
import { FilesSection, ViewingBanner } from './page/files-section.jsx';
import { Header } from './page/header.jsx';
import { Intro } from './page/intro.jsx';
import { Keys } from './page/keys.jsx';
import { ModelPanel } from './page/model-panel.jsx';
import { PromptPanel } from './page/prompt-panel.jsx';
import { Timeline } from './page/timeline.jsx';
import { Verify } from './page/verify.jsx';
import { WorkSection } from './page/work-section.jsx';
import { loadFiles } from './state/load.js';
import { announcement, example, problems } from './state/store.js';
import { isTraceFile, openTrace } from './state/trace-files.js';

function take(files: readonly File[]): void {
  const [first] = files;
  if (files.length === 1 && first && isTraceFile(first)) void openTrace(first);
  else void loadFiles(files);
}

/** Files can be dropped anywhere. */
function useDrop(): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const carriesFiles = (event: DragEvent): boolean =>
      event.dataTransfer?.types.includes('Files') ?? false;
    const listeners = {
      dragover: (event: DragEvent) => {
        if (!carriesFiles(event)) return;
        event.preventDefault();
        setOver(true);
      },
      dragleave: (event: DragEvent) => {
        if (event.relatedTarget === null) setOver(false);
      },
      drop: (event: DragEvent) => {
        if (!carriesFiles(event)) return;
        event.preventDefault();
        setOver(false);
        take([...(event.dataTransfer?.files ?? [])]);
      },
    };
    const all = Object.entries(listeners) as [keyof typeof listeners, (event: DragEvent) => void][];
    for (const [name, listener] of all) addEventListener(name, listener);
    return () => {
      for (const [name, listener] of all) removeEventListener(name, listener);
    };
  }, []);
  return over;
}

export function App() {
  const t = text.value;
  const over = useDrop();
  useEffect(() => {
    document.title = t.title;
  }, [t]);
  return (
    <>
      <a class="skip" href="#instrument">
        {t.skip}
      </a>
      <Header />
      <main class={over ? 'page page-drop' : 'page'}>
        <Intro />
        <div
          class="instrument"
          id="instrument"
          tabIndex={-1}
          data-opening={example.value === undefined && Object.keys(problems.value).length === 0}
        >
          <div class="bench">
            <ModelPanel />
            <PromptPanel />
            <DecodePanel />
          </div>
          <div class="stage">
            <ViewingBanner />
            <Timeline />
            <AttentionSection />
          </div>
          <div class="rail">
            <Evidence />
            <Verify />
          </div>
          <div class="stage-more">
            <WorkSection />
            <BreakSection />
            <FilesSection />
          </div>
        </div>
        <MiniBar />
      </main>
      <Keys />
      <p class="hidden-visually" role="status" aria-live="polite" data-testid="live-region">
        {announcement.value}
      </p>
    </>
  );
}
