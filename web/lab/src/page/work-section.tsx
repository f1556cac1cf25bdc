// What the cache avoided: the summed work of the steps against replays of the same prefixes.
import { computed, signal } from '@preact/signals';
import {
  WorkChart,
  WorkControls,
  workCsv,
  workSeries,
  workSvg,
  WorkTable,
  type WorkAxes,
  type WorkMetric,
} from '../figures/index.js';
import { numbers, text } from '../i18n/index.js';
import { lengthsToReplay, replayEach } from '../state/forward.js';
import { announce, calls, isLive, trace } from '../state/store.js';
import { Button, ProblemAt } from '../ui/controls.jsx';
import { Fold } from '../ui/fold.jsx';
import { JobProgress } from '../ui/job-progress.jsx';
import { sight } from '../ui/sight.js';
import { SaveFigure, SaveTable } from './save.jsx';

const metric = signal<WorkMetric>('causalScores');
const axes = signal<WorkAxes>('linear');

export const workPoints = computed(() => {
  const config = trace.value?.model.config;
  if (!config) return [];
  const made = calls.value;
  const replays = made.flatMap(({ verification }) =>
    verification ? [{ nTokens: verification.nTokens, ...verification.replay }] : [],
  );
  return workSeries(
    config,
    made.map(({ step }) => step),
    [...(trace.value?.replays ?? []), ...replays],
  );
});

const view = sight();
const shownPoints = view.follow(workPoints);

function Sum({ children }: { readonly children: string }) {
  return <p class="formula">{children}</p>;
}

function Derivation() {
  const t = text.value.work;
  const config = trace.value?.model.config;
  const points = shownPoints.value;
  const [first] = points;
  const last = points.at(-1);
  if (!config) return null;
  const { whole } = numbers.value;
  const heads = config.nLayers * config.nHeads;
  const length = last?.length ?? 0;
  const sum = (length * (length + 1)) / 2;
  const squares = (length * (length + 1) * (2 * length + 1)) / 6;
  return (
    <Fold class="derivation" summary={t.derivation}>
      {() => (
        <div class="stack">
          <p>{t.derive.one}</p>
          <Sum>Σ t = 1 + 2 + … + T = T (T + 1) / 2</Sum>
          <p>{t.derive.two}</p>
          <Sum>Σ t² = 1 + 4 + … + T² = T (T + 1) (2T + 1) / 6</Sum>
          <p>{t.derive.three}</p>
          <p>{t.derive.four}</p>
          {first && last && config.slidingWindow === 0 && (
            <>
              <p class="muted" data-testid="work-example">
                {t.derive.example(
                  length,
                  heads,
                  whole(heads * sum),
                  whole(heads * squares),
                  whole(heads * (squares - sum)),
                )}
              </p>
              <p class="muted" data-testid="work-run">
                {t.derive.run(
                  first.length,
                  length,
                  whole(last.cached.scores),
                  whole(last.replay.scores),
                )}
              </p>
            </>
          )}
        </div>
      )}
    </Fold>
  );
}

function RunAll() {
  const t = text.value.work;
  const left = lengthsToReplay().length;
  const unavailable = !isLive.value
    ? text.value.run.why.not_live
    : left === 0
      ? t.allRun
      : undefined;
  return (
    <>
      <div class="buttons">
        <Button unavailable={unavailable} title={t.runAllHint} onClick={replayEach}>
          {t.runAll}
        </Button>
      </div>
      <JobProgress
        kind="replays"
        label={({ done, total }) => t.running(Math.min(total, Math.floor(done) + 1), total)}
      />
      <ProblemAt site="work" />
    </>
  );
}

export function WorkSection() {
  const t = text.value.work;
  const messages = text.value.figures;
  const points = shownPoints.value;
  return (
    <section class="block" aria-labelledby="work-heading" id="work" ref={view.ref}>
      <h2 id="work-heading">{t.heading}</h2>
      <p class="about">{t.about}</p>
      {points.length > 0 ? (
        <>
          <div class="figure-head">
            <WorkControls
              metric={metric.value}
              axes={axes.value}
              onMetric={(chosen) => (metric.value = chosen)}
              onAxes={(chosen) => (axes.value = chosen)}
              messages={messages}
            />
            <SaveFigure
              name={`work-${metric.value}`}
              svg={() =>
                workSvg({
                  points,
                  metric: metric.value,
                  axes: axes.value,
                  messages,
                })
              }
            >
              <SaveTable name="work" csv={() => workCsv(points, messages)} />
            </SaveFigure>
          </div>
          <RunAll />
          <WorkChart
            points={points}
            metric={metric.value}
            axes={axes.value}
            messages={messages}
            onAnnounce={announce}
          />
          <Fold summary={t.table}>
            {() => <WorkTable points={points} metric={metric.value} messages={messages} />}
          </Fold>
        </>
      ) : (
        <p class="muted">{t.empty}</p>
      )}
      <Derivation />
    </section>
  );
}
