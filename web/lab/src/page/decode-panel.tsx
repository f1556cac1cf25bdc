// The next token: the most likely one, a drawn one, or one picked from the list. Or play on.
import { numbers, text } from '../i18n/index.js';
import {
  decodeGreedy,
  decodeSampled,
  decodeToken,
  obstacle,
  reset,
  undoClear,
} from '../state/forward.js';
import { ending, play, stopPlaying } from '../state/play.js';
import {
  busy,
  calls,
  cleared,
  currentCall,
  hasLogits,
  isLive,
  playing,
  playSampled,
  rngState,
  rows,
  sampling,
  seed,
  speed,
  trace,
} from '../state/store.js';
import type { Candidate } from '../state/trace.js';
import { Button, NumberField, ProblemAt } from '../ui/controls.jsx';
import { Icon } from '../ui/icons.jsx';
import { JobProgress } from '../ui/job-progress.jsx';
import { Piece } from '../ui/token-chip.jsx';

function PlayButton() {
  const t = text.value.run;
  if (playing.value) {
    return (
      <Button onClick={stopPlaying}>
        <Icon name="pause" />
        {t.pause}
      </Button>
    );
  }
  const why = !isLive.value ? 'not_live' : rows.value.length > 0 ? obstacle() : undefined;
  return (
    <Button unavailable={why && t.why[why]} onClick={play}>
      <Icon name="play" />
      {t.play}
    </Button>
  );
}

function GreedyButton({ kind }: { readonly kind?: 'primary' }) {
  const t = text.value.run;
  const why = obstacle();
  return (
    <Button kind={kind} unavailable={why && t.why[why]} title={t.greedyHint} onClick={decodeGreedy}>
      {t.greedy}
    </Button>
  );
}

function SampledButton() {
  const t = text.value.run;
  const why = obstacle();
  return (
    <Button unavailable={why && t.why[why]} title={t.sampledHint} onClick={decodeSampled}>
      {t.sampled}
    </Button>
  );
}

function ResetButton() {
  const t = text.value.run;
  const unavailable = isLive.value ? undefined : t.why.not_live;
  const resetAll = (): Promise<boolean> => {
    stopPlaying();
    return reset();
  };
  return (
    <Button unavailable={unavailable} title={t.resetHint} onClick={resetAll}>
      <Icon name="reset" />
      {t.reset}
    </Button>
  );
}

/** After the cache was emptied: a way back. */
function Undo() {
  const t = text.value.run;
  const back = cleared.value;
  if (!back || !isLive.value) return null;
  return (
    <p class="small note note-line" data-testid="undo">
      {t.cleared(back.trace.rows.length)}{' '}
      <Button title={t.undoHint} onClick={undoClear}>
        {t.undo}
      </Button>
    </p>
  );
}

function CandidateRow({
  candidate,
  largest,
}: {
  readonly candidate: Candidate;
  readonly largest: number;
}) {
  const t = text.value.run;
  const { token, text: piece, probability } = candidate;
  const why = obstacle();
  const width = `${(100 * probability) / largest}%`;
  return (
    <li>
      <button
        type="button"
        class="candidate"
        aria-disabled={why !== undefined}
        title={why ? t.why[why] : undefined}
        onClick={() => {
          if (why === undefined) void decodeToken(token);
        }}
      >
        <Piece text={piece} />
        <span class="hidden-visually">{t.candidateId(token)}</span>
        <span class="candidate-track">
          <span class="candidate-bar" style={{ width }} />
        </span>
        <span class="candidate-value">{numbers.value.percent(probability)}</span>
      </button>
    </li>
  );
}

function Candidates() {
  const t = text.value.run;
  const call = currentCall.value;
  const shown = call?.candidates.slice(0, 8) ?? [];
  const why = obstacle();
  const hint =
    rows.value.length === 0
      ? t.nextNone
      : !call
        ? t.nextUnknown
        : why !== undefined
          ? t.why[why]
          : hasLogits.value
            ? t.nextHint
            : t.nextRecorded;
  return (
    <div>
      <h3>{t.next}</h3>
      <p class="muted small">{hint}</p>
      <ol class="candidates" data-testid="candidates">
        {shown.map((candidate, rank) => (
          // By rank: the focus stays on the list while its tokens change.
          <CandidateRow key={rank} candidate={candidate} largest={shown[0]?.probability ?? 1} />
        ))}
      </ol>
    </div>
  );
}

function LastDraw() {
  const draw = calls.value.at(-1)?.draw;
  if (!draw || draw.unitDraw === undefined) return null;
  const [from, to] = draw.interval;
  return (
    <p class="muted small" data-testid="draw">
      {text.value.run.draw(
        numbers.value.fixed(draw.unitDraw, 4),
        numbers.value.fixed(from, 4),
        numbers.value.fixed(to, 4),
        draw.candidates,
      )}
    </p>
  );
}

function Sampling() {
  const t = text.value.run;
  const settings = sampling.value;
  const set = (changed: Partial<typeof settings>): void => {
    sampling.value = { ...settings, ...changed };
  };
  return (
    <details>
      <summary>{t.sampling}</summary>
      <div class="field-grid">
        <NumberField
          label={t.temperature}
          value={settings.temperature}
          min={0}
          max={10}
          step={0.1}
          onChange={(temperature) => set({ temperature })}
        />
        <NumberField
          label={t.topK}
          value={settings.topK}
          min={0}
          max={1000}
          step={1}
          onChange={(topK) => set({ topK: Math.round(topK) })}
        />
        <NumberField
          label={t.topP}
          value={settings.topP}
          min={0.01}
          max={1}
          step={0.01}
          onChange={(topP) => set({ topP })}
        />
        <NumberField
          label={t.minP}
          value={settings.minP}
          min={0}
          max={0.99}
          step={0.01}
          onChange={(minP) => set({ minP })}
        />
        <NumberField
          label={t.repetitionPenalty}
          value={settings.repetitionPenalty}
          min={0.1}
          max={5}
          step={0.05}
          onChange={(repetitionPenalty) => set({ repetitionPenalty })}
        />
        <label class="field">
          <span>{t.seed}</span>
          <input
            class="input"
            type="text"
            inputMode="numeric"
            value={String(seed.value)}
            onChange={(event) => {
              const typed = event.currentTarget.value.trim();
              if (/^\d{1,20}$/.test(typed)) {
                seed.value = BigInt.asUintN(64, BigInt(typed));
                rngState.value = undefined;
              }
              event.currentTarget.value = String(seed.value);
            }}
          />
        </label>
      </div>
      <p class="muted small">{t.samplingHint}</p>
      <LastDraw />
    </details>
  );
}

export function DecodePanel() {
  const t = text.value.run;
  const model = trace.value?.model;
  return (
    <section class="panel" aria-labelledby="decode-heading" id="decode">
      <div class="panel-head">
        <h2 id="decode-heading">{t.heading}</h2>
        {model && (
          <span class="muted small" data-testid="run-state">
            {t.state(rows.value.length, model.capacity)}
          </span>
        )}
      </div>
      <div class="buttons">
        <GreedyButton kind="primary" />
        <SampledButton />
        <PlayButton />
      </div>
      {ending.value && !playing.value && <p class="small note">{t.endings[ending.value]}</p>}
      {obstacle() === 'full' && (
        <p class="small note" data-testid="full">
          {t.why.full}
        </p>
      )}
      <Undo />
      <JobProgress
        kind="undo"
        stoppable={false}
        label={({ done, total }) => t.undoing(numbers.value.percentDone(done, total))}
      />
      {busy.value?.kind === 'decode' && <progress aria-label={t.heading} />}
      <ProblemAt site="run" />
      <Candidates />
      <label class="field">
        <span>
          {t.speed}: {t.perSecond(speed.value)}
        </span>
        <input
          type="range"
          min={1}
          max={60}
          value={speed.value}
          aria-valuetext={t.perSecond(speed.value)}
          onInput={(event) => (speed.value = event.currentTarget.valueAsNumber)}
        />
      </label>
      <label class="switch">
        <input
          type="checkbox"
          checked={playSampled.value}
          onChange={(event) => (playSampled.value = event.currentTarget.checked)}
        />
        {t.playSampled}
      </label>
      <Sampling />
      <div class="buttons">
        <ResetButton />
      </div>
    </section>
  );
}

/** The controls that go along on a narrow screen, where the panels scroll out of sight. */
export function MiniBar() {
  const model = trace.value?.model;
  if (!model) return null;
  return (
    <div class="minibar" role="group" aria-label={text.value.run.heading}>
      <span class="muted small">
        {numbers.value.whole(rows.value.length)}/{numbers.value.whole(model.capacity)}
      </span>
      <GreedyButton />
      <PlayButton />
    </div>
  );
}
