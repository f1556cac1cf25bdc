// Compares the session with a replay of the whole text without the cache.
import type { Work } from 'kvlens';
import { difference } from '../format.js';
import { numbers, text } from '../i18n/index.js';
import { verify } from '../state/forward.js';
import { isLive, rows, shownCall } from '../state/store.js';
import { sameHashes, type Call } from '../state/trace.js';
import { Button, ProblemAt, Verdict } from '../ui/controls.jsx';
import { JobProgress } from '../ui/job-progress.jsx';
import { totalMultiplyAdds } from '../work-sums.js';

function Outcome({ call }: { readonly call: Call }) {
  const t = text.value.verify;
  const result = call.verification;
  if (!result) return <p class="muted small">{t.notYet}</p>;
  const kept = sameHashes(result.hashesBefore, result.hashesAfter);
  const lines: readonly (readonly [string, (work: Work) => string])[] = [
    [t.dense, (work) => numbers.value.whole(work.attentionScoreValues)],
    [t.causal, (work) => numbers.value.whole(work.causalScoreValues)],
    [t.multiplyAdds, (work) => numbers.value.whole(totalMultiplyAdds(work))],
  ];
  return (
    <div class="stack" data-testid="verification">
      <p>
        <Verdict good={result.bytesEqual}>{result.bytesEqual ? t.equal : t.different}</Verdict>
      </p>
      <dl class="facts">
        <div data-fact="difference">
          <dt>{t.difference}</dt>
          <dd>{difference(result.maxAbsDifference)}</dd>
        </div>
        <div data-fact="bytes">
          <dt>{t.bytes}</dt>
          <dd>{result.bytesEqual ? text.value.yes : text.value.no}</dd>
        </div>
      </dl>
      <table>
        <thead>
          <tr>
            <td />
            <th scope="col">
              {t.cached}
              <br />
              <span class="muted">{t.lastCall}</span>
            </th>
            <th scope="col">{t.replay}</th>
          </tr>
        </thead>
        <tbody>
          {lines.map(([name, count]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{count(call.step.work)}</td>
              <td>{count(result.replay.work)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">{t.time}</th>
            <td>{numbers.value.duration(call.step.milliseconds)}</td>
            <td>{numbers.value.duration(result.replay.milliseconds)}</td>
          </tr>
        </tbody>
      </table>
      <p>
        <Verdict good={kept}>{kept ? t.cacheKept : t.cacheChanged}</Verdict>
      </p>
    </div>
  );
}

export function Verify() {
  const t = text.value.verify;
  const call = shownCall.value;
  const unavailable = !isLive.value
    ? text.value.run.why.not_live
    : rows.value.length === 0
      ? t.none
      : undefined;
  return (
    <section class="block" aria-labelledby="verify-heading" id="verify">
      <h2 id="verify-heading">{t.heading}</h2>
      <p class="about">{t.about}</p>
      <p>
        <Button unavailable={unavailable} onClick={verify}>
          {t.button}
        </Button>
      </p>
      <JobProgress
        kind="verify"
        label={({ done, total }) =>
          t.working(rows.value.length, numbers.value.percentDone(done, total))
        }
      />
      <ProblemAt site="verify" />
      {call && <Outcome call={call} />}
    </section>
  );
}
