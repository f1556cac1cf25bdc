// The words of the first screen: what prefill, decode and the cache are, and where to see each.
import { numbers, text } from '../i18n/index.js';
import { example } from '../state/store.js';

const places = ['#timeline', '#attention', '#work'] as const;

export function Intro() {
  const t = text.value.intro;
  const done = example.value;
  return (
    <section class="intro" aria-labelledby="intro-heading">
      <h1 id="intro-heading">{t.heading}</h1>
      <p class="intro-lead">
        {t.lead}{' '}
        <span class="intro-example muted">
          {done
            ? t.computed(done.tokens, numbers.value.duration(done.milliseconds), done.model)
            : t.computing}
        </span>
      </p>
      <ol class="intro-steps">
        {t.steps.map((step, index) => (
          <li key={step.name}>
            <p>
              <strong>{step.name}</strong> {step.text}
            </p>
            <a href={places[index] ?? '#timeline'}>{step.link}</a>
          </li>
        ))}
      </ol>
    </section>
  );
}
