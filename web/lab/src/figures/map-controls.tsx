// How the maps are drawn: ramp, scale, and whether the sink is hidden.
import { useId } from 'preact/hooks';
import type { FigureMessages } from '../i18n/en-figures.js';
import { Segments } from '../ui/segments.js';
import { rampGradient } from './palette.js';
import type { MapStyle, Palette, ScaleKind } from './types.js';

interface MapControlsProps {
  readonly mapStyle: MapStyle;
  readonly onChange: (mapStyle: MapStyle) => void;
  readonly messages: FigureMessages;
}

const palettes: readonly Palette[] = ['cividis', 'inferno', 'greys'];
const scales: readonly ScaleKind[] = ['linear', 'sqrt', 'log'];

export function MapControls({ mapStyle, onChange, messages }: MapControlsProps) {
  const id = useId();
  const text = messages.controls;
  return (
    <div class="kv-controls">
      <Segments
        legend={text.palette}
        legendShown
        value={mapStyle.palette}
        options={palettes.map((value) => ({
          value,
          label: text.palettes[value],
          mark: (
            <i
              class="kv-ramp-swatch"
              style={{ background: rampGradient(value) }}
              aria-hidden="true"
            />
          ),
        }))}
        onChange={(palette) => onChange({ ...mapStyle, palette })}
      />
      <Segments
        legend={text.scale}
        legendShown
        value={mapStyle.scale}
        options={scales.map((value) => ({ value, label: text.scales[value] }))}
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
