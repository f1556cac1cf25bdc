// Controls that several parts of the page share.
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { byteSize, text } from '../i18n/index.js';
import { problems, clearProblem, type Problem, type Site } from '../state/store.js';
import { Icon } from './icons.jsx';

interface ButtonProps extends Omit<ButtonHTMLAttributes, 'onClick' | 'title' | 'children'> {
  readonly onClick: () => unknown;
  readonly kind?: 'primary' | 'plain' | 'icon' | undefined;
  /** Why it cannot act now, in words. It then stays focusable and does nothing. */
  readonly unavailable?: string | undefined;
  readonly title?: string | undefined;
  readonly children: ComponentChildren;
}

export function Button({ onClick, kind, unavailable, title, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      class={`button ${kind ?? ''}`}
      title={unavailable ?? title}
      aria-disabled={unavailable !== undefined}
      onClick={() => {
        if (unavailable === undefined) void onClick();
      }}
    >
      {children}
    </button>
  );
}

interface NumberFieldProps {
  readonly label: string;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  readonly onChange: (value: number) => void;
}

export function NumberField({ label, value, min, max, step, onChange }: NumberFieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        class="input"
        type="number"
        inputMode="decimal"
        value={value}
        min={min}
        max={max}
        step={step}
        onChange={(event) => {
          const typed = event.currentTarget.valueAsNumber;
          if (Number.isFinite(typed)) onChange(Math.min(max, Math.max(min, typed)));
          else event.currentTarget.value = String(value);
        }}
      />
    </label>
  );
}

export function Verdict({
  good,
  children,
}: {
  readonly good: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <span class={`verdict ${good ? 'good' : 'wrong'}`}>
      <Icon name={good ? 'check' : 'cross'} />
      {children}
    </span>
  );
}

function sentence(problem: Problem): {
  readonly text: string;
  readonly original?: string;
  readonly code?: string;
} {
  const t = text.value;
  switch (problem.kind) {
    case 'error':
      return { ...t.error(problem.error), code: problem.error.code };
    case 'engine_ended':
      return { text: t.model.engineEnded };
    case 'trace':
      return { text: t.files.faults[problem.fault] };
    case 'ids':
      return { text: t.prompt.notAnId(problem.text, problem.vocabSize) };
    case 'download_too_large':
      return { text: t.model.downloadTooLarge(byteSize(problem.bytes), byteSize(problem.limit)) };
    case 'other':
      return { text: t.problem.unexpected(problem.message) };
  }
}

/** What went wrong at a place of the page, told there. */
export function ProblemAt({
  site,
  children,
}: {
  readonly site: Site;
  readonly children?: ComponentChildren;
}) {
  const problem = problems.value[site];
  const t = text.value.problem;
  if (!problem) return null;
  const { text: words, original, code } = sentence(problem);
  return (
    <div class="problem" role="alert">
      <div>
        <p>{words}</p>
        {original !== undefined && (
          <p class="muted small" lang="en">
            {original}
          </p>
        )}
        {code !== undefined && <code>{code}</code>}
        {children}
      </div>
      <Button kind="plain" aria-label={t.dismiss} onClick={() => clearProblem(site)}>
        <Icon name="cross" />
      </Button>
    </div>
  );
}
