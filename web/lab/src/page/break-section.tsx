// Real calls that the engine must refuse, and the proof that they left nothing behind.
import { text } from '../i18n/index.js';
import {
  attempt,
  attemptAll,
  attemptIds,
  attempts,
  expectedCodes,
  type Attempt,
  type AttemptId,
} from '../state/break-it.js';
import { busy, engine } from '../state/store.js';
import { Button, ProblemAt, Verdict } from '../ui/controls.jsx';
import { Fold } from '../ui/fold.jsx';

function Hashes({ outcome }: { readonly outcome: Attempt }) {
  const t = text.value.breakIt;
  const { before, after } = outcome;
  const names = before.hashes.map((_, index) =>
    index === before.hashes.length - 1 ? t.weights : t.layer(index),
  );
  return (
    <Fold summary={t.hashes}>
      {() => (
        <div class="scroll" tabIndex={0} role="group" aria-label={t.hashes}>
          <table class="hashes">
            <thead>
              <tr>
                <td />
                <th scope="col">{t.before}</th>
                <th scope="col">{t.after}</th>
              </tr>
            </thead>
            <tbody>
              <tr>
                <th scope="row">kvLen</th>
                <td>{t.rows(before.kvLen)}</td>
                <td>{t.rows(after.kvLen)}</td>
              </tr>
              {names.map((name, index) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>
                    <code>{before.hashes[index]}</code>
                  </td>
                  <td>
                    <code>{after.hashes[index]}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Fold>
  );
}

function Outcome({ id, outcome }: { readonly id: AttemptId; readonly outcome: Attempt }) {
  const t = text.value.breakIt;
  const { error, own } = outcome;
  const told = error && text.value.error(error);
  return (
    <div class="outcome" data-testid={`outcome-${id}`}>
      <p>
        <Verdict good={error?.code === expectedCodes[id]}>
          {error ? t.refused : t.notRefused}
        </Verdict>{' '}
        {error && <code class="code">{error.code}</code>}
      </p>
      {told && <p>{told.text}</p>}
      {told?.original !== undefined && (
        <p class="muted small" lang="en">
          {told.original}
        </p>
      )}
      <p>
        <Verdict good={outcome.unchanged}>{outcome.unchanged ? t.same : t.notSame}</Verdict>
      </p>
      {own && own.nRows > 0 && (
        <p class="muted small">{own.unchanged ? t.own(own.nRows) : t.ownChanged}</p>
      )}
      <Hashes outcome={outcome} />
    </div>
  );
}

export function BreakSection() {
  const t = text.value.breakIt;
  const unavailable = engine.value ? undefined : text.value.model.starting;
  return (
    <section class="block" aria-labelledby="break-heading" id="break">
      <div class="block-head">
        <h2 id="break-heading">{t.heading}</h2>
        <Button unavailable={unavailable} onClick={attemptAll}>
          {t.all}
        </Button>
      </div>
      <p class="about">{t.about}</p>
      <ProblemAt site="break" />
      <ul class="attempts" aria-busy={busy.value?.kind === 'break'}>
        {attemptIds.map((id) => {
          const outcome = attempts.value[id];
          const { name, text: what } = t.attempts[id];
          return (
            <li key={id} class="attempt">
              <div class="attempt-head">
                <div>
                  <h3>{name}</h3>
                  <p class="muted small">{what}</p>
                </div>
                <Button
                  unavailable={unavailable}
                  aria-label={`${t.try}: ${name}`}
                  onClick={() => attempt(id)}
                >
                  {t.try}
                </Button>
              </div>
              {outcome && <Outcome id={id} outcome={outcome} />}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
