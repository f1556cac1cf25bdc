// What one call did, by its counters, and what came out of it.
import { duration, fixed4, percent, whole } from '../format.js';
import { visibleToken } from '../figures/index.js';
import { text } from '../i18n/index.js';
import { calls, pinnedCall, shownCall, shownCallIndex, trace } from '../state/store.js';
import type { Call } from '../state/trace.js';
import { Button } from '../ui/controls.jsx';
import { Fold } from '../ui/fold.jsx';
import { Icon } from '../ui/icons.jsx';
import { Piece } from '../ui/token-chip.jsx';
import { multiplyAddsByStage, totalMultiplyAdds } from '../work-sums.js';

function Browse() {
  const t = text.value.evidence;
  const index = shownCallIndex.value;
  const last = calls.value.length - 1;
  const show = (next: number) => () => {
    pinnedCall.value = next >= last ? null : next;
  };
  return (
    <div class="buttons">
      <Button
        kind="plain"
        aria-label={t.earlier}
        unavailable={index > 0 ? undefined : t.earlier}
        onClick={show(index - 1)}
      >
        <Icon name="previous" />
      </Button>
      <Button
        kind="plain"
        aria-label={t.later}
        unavailable={index < last ? undefined : t.later}
        onClick={show(index + 1)}
      >
        <Icon name="next" />
      </Button>
    </div>
  );
}

function Counters({ call, tokens }: { readonly call: Call; readonly tokens: string }) {
  const t = text.value.evidence;
  const { step, how } = call;
  const { work } = step;
  const [firstAppended = 0] = step.rowsAppended;
  const everywhere = step.rowsAppended.every((n) => n === firstAppended);
  const facts: readonly (readonly [string, string, string])[] = [
    ['phase', t.phase, text.value.timeline.phases[step.phase]],
    ['how', t.how, `${tokens} ${t.hows[how]}`],
    ['position', t.position, whole(step.position)],
    ['length', t.length, t.fromTo(step.kvLenBefore, step.kvLen)],
    [
      'appended',
      t.appended,
      everywhere
        ? t.appendedEach(firstAppended, step.rowsAppended.length)
        : step.rowsAppended.join(', '),
    ],
    ['rowScores', t.rowScores, whole(step.rowAttentionScoreValues)],
    ['scores', t.scores, whole(work.attentionScoreValues)],
    ['causal', t.causal, whole(work.causalScoreValues)],
    ['multiplyAdds', t.multiplyAdds, whole(totalMultiplyAdds(work))],
    ['kvRead', t.kvRead, whole(work.kvBytesRead)],
    ['kvWritten', t.kvWritten, whole(work.kvBytesWritten)],
    ['time', t.time, t.milliseconds(duration(step.milliseconds))],
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
                <dd>{whole(count)}</dd>
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
                <td>{fixed4(logit)}</td>
                <td>{percent(probability)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Fold>
  );
}

/** What the call was given: a token by its text, several by their number. */
function tokensOf(call: Call, index: number): string {
  const [only] = call.tokens;
  if (call.tokens.length !== 1 || only === undefined)
    return text.value.prompt.tokens(call.tokens.length);
  // A fork may have dropped its row.
  const row = trace.value?.rows.find((held) => held.call === index);
  return row ? visibleToken(row.text) : `id ${only}`;
}

export function Evidence() {
  const t = text.value.evidence;
  const call = shownCall.value;
  const index = shownCallIndex.value;
  const all = calls.value.length;
  return (
    <section class="block" aria-labelledby="evidence-heading" id="evidence">
      <div class="block-head">
        <h2 id="evidence-heading">
          {index < all - 1 ? t.headingEarlier(index + 1, all) : t.heading}
        </h2>
        {all > 0 && <Browse />}
      </div>
      <p class="about">{t.about}</p>
      {call ? (
        <>
          <Counters call={call} tokens={tokensOf(call, index)} />
          <TopTokens call={call} />
        </>
      ) : (
        <p class="muted">{t.empty}</p>
      )}
    </section>
  );
}
