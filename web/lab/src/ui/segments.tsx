// A choice of one among a few, all of them visible.
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface SegmentsProps<T extends string> {
  readonly legend: string;
  /** Shows the legend above the choices; otherwise only screen readers get it. */
  readonly legendShown?: boolean;
  readonly value: T;
  readonly options: readonly {
    readonly value: T;
    readonly label: string;
    /** Drawn before the label. */
    readonly mark?: ComponentChildren;
    /** Drawn in place of the label, which screen readers still get. */
    readonly icon?: ComponentChildren;
  }[];
  readonly onChange: (value: T) => void;
}

export function Segments<T extends string>(props: SegmentsProps<T>) {
  const { legend, legendShown = false, value, options, onChange } = props;
  const name = useId();
  return (
    <fieldset class="segments-field">
      <legend class={legendShown ? '' : 'hidden-visually'}>{legend}</legend>
      <div class="segments">
        {options.map((option) => (
          <label key={option.value} title={option.icon === undefined ? undefined : option.label}>
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
            />
            {option.mark}
            {option.icon ?? option.label}
            {option.icon !== undefined && <span class="hidden-visually">{option.label}</span>}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
