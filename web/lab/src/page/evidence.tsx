// What one step did, by the engine's counters, and the predictions after it.
import type { Config } from 'kvlens';
import { visibleToken } from '../format.js';
import { numbers, text } from '../i18n/index.js';
import { pinnedPosition, presentSteps, shownCall, shownStep, trace } from '../state/store.js';
import type { Call } from '../state/trace.js';
import { Button } from '../ui/controls.jsx';
import { Fold } from '../ui/fold.jsx';
import { Icon } from '../ui/icons.jsx';
import { Piece } from '../ui/token-chip.jsx';
import { multiplyAddsByStage, totalMultiplyAdds } from '../work-sums.js';

function Browse() {
  const t = text.value.evidence;
  const steps = presentSteps.value;
  const index = shownStep.value;
  const last = steps.length - 1;
  const show = (next: number) => () => {
    pinnedPosition.value = next >= last ? null : (steps[next]?.lastPosition ?? null);
  };
  return (
    <div class="buttons">
      <Button
        kind="plain"
        aria-label={t.earlier}
        unavailable={index > 0 ? undefined : t.isFirst}
        onClick={show(index - 1)}
      >
        <Icon name="previous" />
      </Button>
      <Button
        kind="plain"
        aria-label={t.later}
        unavailable={index < last ? undefined : t.isLast}
        onClick={show(index + 1)}
      >
        <Icon name="next" />
      </Button>
    </div>
  );
}

interface CountersProps {
  readonly call: Call;
  readonly tokens: string;
  readonly config: Config;
}

function Counters({ call, tokens, config: { nHeads, nKvHeads } }: CountersProps) {
  const t = text.value.evidence;
  const { step, how } = call;
  const { work } = step;
  // Each row takes as many bytes as the next one.
  const bytesPerRow = work.kvBytesWritten / (step.kvLen - step.kvLenBefore);
  const [firstAppended = 0] = step.rowsAppended;
  const everywhere = step.rowsAppended.every((n) => n === firstAppended);
  const facts: readonly (readonly [string, string, string])[] = [
    ['phase', t.phase, text.value.timeline.phases[step.phase]],
    ['how', t.how, t.chosen(tokens, t.hows[how])],
    ['position', t.position, numbers.value.whole(step.position)],
    ['length', t.length, t.fromTo(step.kvLenBefore, step.kvLen)],
    [
      'appended',
      t.appended,
      everywhere
        ? t.appendedEach(firstAppended, step.rowsAppended.length)
        : step.rowsAppended.join(', '),
    ],
    ['rowScores', t.rowScores, numbers.value.whole(step.rowAttentionScoreValues)],
    ['scores', t.scores, numbers.value.whole(work.attentionScoreValues)],
    ['causal', t.causal, numbers.value.whole(work.causalScoreValues)],
    ['multiplyAdds', t.multiplyAdds, numbers.value.whole(totalMultiplyAdds(work))],
    ['cacheSize', t.cacheSize, t.bytes(numbers.value.whole(bytesPerRow * step.kvLen))],
    ['kvRead', t.kvRead(nHeads / nKvHeads), t.bytes(numbers.value.whole(work.kvBytesRead))],
    ['kvWritten', t.kvWritten, t.bytes(numbers.value.whole(work.kvBytesWritten))],
    ['time', t.time, t.milliseconds(numbers.value.duration(step.milliseconds))],
  ];
  return (
    <>
      <dl class="facts" data-testid="evidence">
        {facts.map(([key, name, value]) => (
          <div key={key} data-fact={key}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Fold summary={t.stages}>
        {() => (
          <dl class="facts">
            {multiplyAddsByStage(work).map(([stage, count]) => (
              <div key={stage}>
                <dt>{t.stage[stage]}</dt>
                <dd>{numbers.value.whole(count)}</dd>
              </div>
            ))}
          </dl>
        )}
      </Fold>
    </>
  );
}

function TopTokens({ call }: { readonly call: Call }) {
  const t = text.value.evidence;
  return (
    <Fold summary={t.top} open>
      {() => (
        <table data-testid="top-tokens">
          <thead>
            <tr>
              <th scope="col">{t.token}</th>
              <th scope="col">{t.id}</th>
              <th scope="col">{t.logit}</th>
              <th scope="col">{t.probability}</th>
            </tr>
          </thead>
          <tbody>
            {call.candidates.slice(0, 6).map(({ token, text: piece, logit, probability }, rank) => (
              <tr key={rank}>
                <td>
                  <Piece text={piece} />
                </td>
                <td>{token}</td>
                <td>{numbers.value.fixed(logit, 4)}</td>
                <td>{numbers.value.percent(probability)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Fold>
  );
}

/** What the step was given: one token by its text, several by their number. */
function tokensOf(call: Call, lastPosition: number): string {
  const row = trace.value?.rows[lastPosition];
  return call.tokens.length === 1 && row
    ? visibleToken(row.text)
    : text.value.prompt.tokens(call.tokens.length);
}

export function Evidence() {
  const t = text.value.evidence;
  const call = shownCall.value;
  const config = trace.value?.model.config;
  const steps = presentSteps.value;
  const index = shownStep.value;
  return (
    <section class="block" aria-labelledby="evidence-heading" id="evidence">
      <div class="block-head">
        <h2 id="evidence-heading">
          {index < steps.length - 1 ? t.headingEarlier(index + 1, steps.length) : t.heading}
        </h2>
        {steps.length > 0 && <Browse />}
      </div>
      <p class="about">{t.about}</p>
      {call && config ? (
        <>
          <Counters
            call={call}
            tokens={tokensOf(call, steps[index]?.lastPosition ?? 0)}
            config={config}
          />
          <TopTokens call={call} />
        </>
      ) : (
        <p class="muted">{t.empty}</p>
      )}
    </section>
  );
}
