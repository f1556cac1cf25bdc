// How the maps are drawn: ramp, scale, and whether the sink is left out.
import { useId } from 'preact/hooks';
import { rampGradient } from './legend.js';
import type { FigureMessages } from './messages.js';
import type { MapStyle, Palette, ScaleKind } from './types.js';

interface MapControlsProps {
  readonly mapStyle: MapStyle;
  readonly onChange: (mapStyle: MapStyle) => void;
  readonly messages: FigureMessages;
}

const palettes: readonly Palette[] = ['cividis', 'inferno', 'greys'];
const scales: readonly ScaleKind[] = ['linear', 'sqrt', 'log'];

interface ChoiceProps<T extends string> {
  readonly name: string;
  readonly options: readonly T[];
  readonly value: T;
  readonly labels: Readonly<Record<T, string>>;
  readonly onChange: (value: T) => void;
  /** Drawn before a label. */
  readonly swatch?: (option: T) => string;
}

/** One of a few, as radio buttons in a row. */
export function Choice<T extends string>({
  name,
  options,
  value,
  labels,
  onChange,
  swatch,
}: ChoiceProps<T>) {
  const id = useId();
  return (
    <fieldset class="kv-choice">
      <legend>{name}</legend>
      <div class="segments kv-segments">
        {options.map((option) => (
          <label key={option}>
            <input
              type="radio"
              name={id}
              checked={option === value}
              onChange={() => onChange(option)}
            />
            {swatch && (
              <i
                class="kv-choice-swatch"
                style={{ background: swatch(option) }}
                aria-hidden="true"
              />
            )}
            {labels[option]}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function MapControls({ mapStyle, onChange, messages }: MapControlsProps) {
  const id = useId();
  const text = messages.controls;
  return (
    <div class="kv-controls">
      <Choice
        name={text.palette}
        options={palettes}
        value={mapStyle.palette}
        labels={text.palettes}
        swatch={rampGradient}
        onChange={(palette) => onChange({ ...mapStyle, palette })}
      />
      <Choice
        name={text.scale}
        options={scales}
        value={mapStyle.scale}
        labels={text.scales}
        onChange={(scale) => onChange({ ...mapStyle, scale })}
      />
      <div class="kv-switch">
        <label class="switch">
          <input
            type="checkbox"
            role="switch"
            checked={mapStyle.hideSink}
            aria-describedby={id}
            onChange={(event) => onChange({ ...mapStyle, hideSink: event.currentTarget.checked })}
          />
          <span>{text.hideSink}</span>
        </label>
        <p id={id}>{text.hideSinkHelp}</p>
      </div>
    </div>
  );
}
