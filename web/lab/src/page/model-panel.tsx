// The running model, its facts, and how to load another one.
import { useRef, useState } from 'preact/hooks';
import { byteSize, numbers, text } from '../i18n/index.js';
import { canReloadForThreads, offlineReady, reloadForThreads } from '../offline.js';
import { loadBuiltIn, loadFiles, loadUrl } from '../state/load.js';
import { builtInIds } from '../state/models.js';
import { restart } from '../state/startup.js';
import { engine, live, loading, problems, trace } from '../state/store.js';
import { stop } from '../state/jobs.js';
import { Button, ProblemAt } from '../ui/controls.jsx';
import { Fold } from '../ui/fold.jsx';

function Facts() {
  const shown = trace.value;
  const t = text.value.model;
  if (!shown) return null;
  const { model, module } = shown;
  const { config } = model;
  const facts: readonly (readonly [string, string])[] = [
    [t.facts.layers, numbers.value.whole(config.nLayers)],
    [t.facts.heads, numbers.value.whole(config.nHeads)],
    [t.facts.kvHeads, numbers.value.whole(config.nKvHeads)],
    [t.facts.headDim, numbers.value.whole(config.headDim)],
    [t.facts.dModel, numbers.value.whole(config.dModel)],
    [t.facts.dFf, numbers.value.whole(config.dFf)],
    [t.facts.vocab, numbers.value.whole(config.vocabSize)],
    [t.facts.context, numbers.value.whole(config.maxSeqLen)],
    [t.facts.capacity, numbers.value.whole(model.capacity)],
    [
      t.facts.window,
      config.slidingWindow === 0 ? t.none : numbers.value.whole(config.slidingWindow),
    ],
    [t.facts.parameters, numbers.value.whole(model.nParameters)],
    [
      t.facts.stored,
      `${model.dtypes.map(([dtype]) => dtype).join(', ')} · ${byteSize(model.parameterBytes)}`,
    ],
    [t.facts.compute, t.precision[model.compute]],
    [t.facts.rope, t.pairing[config.rope.pairing]],
    [t.facts.format, `${model.format} · ${model.architecture}`],
    [t.facts.engine, `${module.variant} · ${t.threads(module.threads)}`],
    [t.facts.hash, model.hash],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Loading() {
  const now = loading.value;
  const t = text.value.model;
  if (!now) return null;
  const { name, progress } = now;
  const total = progress?.total ?? 0;
  return (
    <div class="progress">
      <label>
        {t.loading(name)}
        {progress && (
          <span class="muted">
            {' · '}
            {t.stages[progress.stage]}
            {total > 0 && ` · ${t.bytesOf(byteSize(progress.bytes), byteSize(total))}`}
          </span>
        )}
        <progress {...(total > 0 ? { value: progress?.bytes ?? 0, max: total } : {})} />
      </label>
      <div>
        <Button onClick={stop}>{t.cancel}</Button>
      </div>
    </div>
  );
}

function OwnModel() {
  const t = text.value.model;
  const input = useRef<HTMLInputElement>(null);
  const [address, setAddress] = useState('');
  return (
    <details>
      <summary>{t.own}</summary>
      <div class="stack">
        <div class="buttons">
          <Button onClick={() => input.current?.click()}>{t.openFile}</Button>
          <input
            ref={input}
            type="file"
            multiple
            hidden
            data-testid="model-files"
            onChange={(event) => {
              const files = [...(event.currentTarget.files ?? [])];
              event.currentTarget.value = '';
              void loadFiles(files);
            }}
          />
        </div>
        <p class="muted small">{t.dropHint}</p>
        <form
          class="line-form"
          onSubmit={(event) => {
            event.preventDefault();
            void loadUrl(address.trim());
          }}
        >
          <label class="field">
            <span>{t.url}</span>
            <input
              class="input"
              type="text"
              inputMode="url"
              autoComplete="off"
              spellcheck={false}
              required
              value={address}
              onInput={(event) => setAddress(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="button">
            {t.load}
          </button>
        </form>
      </div>
    </details>
  );
}

function Details() {
  const started = engine.value;
  return (
    <>
      <Facts />
      {started && (
        <ul class="muted small" lang="en">
          {started.info.why.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
      {offlineReady.value && <p class="muted small">{text.value.model.offlineReady}</p>}
    </>
  );
}

export function ModelPanel() {
  const t = text.value.model;
  const shown = trace.value?.model;
  const started = engine.value;
  const builtIn = live.value?.builtIn;
  return (
    <section class="panel" aria-labelledby="model-heading">
      <h2 id="model-heading">{t.heading}</h2>
      <label class="field">
        <span class="hidden-visually">{t.choose}</span>
        <select
          class="input"
          value={builtIn ?? 'own'}
          onChange={(event) => {
            const id = builtInIds.find((known) => known === event.currentTarget.value);
            if (id) void loadBuiltIn(id);
          }}
        >
          {builtInIds.map((id) => (
            <option key={id} value={id}>
              {t.names[id]}
            </option>
          ))}
          {live.value && builtIn === null && (
            <option value="own">{live.value.model.info.name}</option>
          )}
        </select>
      </label>
      {!started && !problems.value.engine && <p class="muted small">{t.starting}</p>}
      <Loading />
      <ProblemAt site="model" />
      <ProblemAt site="engine">
        {!started && (
          <p>
            <Button onClick={restart}>{t.restart}</Button>
          </p>
        )}
      </ProblemAt>
      {shown && (
        <p class="muted small" data-testid="model-line">
          {t.size(numbers.value.whole(shown.nParameters))} ·{' '}
          {shown.dtypes.map(([dtype]) => dtype).join(', ')} ·{' '}
          {t.threads(started?.info.threads ?? 1)}
        </p>
      )}
      {started?.info.threads === 1 && !crossOriginIsolated && (
        <details class="note">
          <summary>{t.oneThread}</summary>
          <p>{t.oneThreadWhy}</p>
          {canReloadForThreads.value && (
            <Button onClick={reloadForThreads}>{t.reloadForThreads}</Button>
          )}
        </details>
      )}
      <OwnModel />
      <Fold summary={t.details}>{() => <Details />}</Fold>
    </section>
  );
}
