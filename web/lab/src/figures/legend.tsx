// The colour ramp with its scale, and what the marks that are no colours mean.
import { unscaled } from './colour-scale.js';
import { significantNumber } from './format.js';
import type { FigureMessages } from './messages.js';
import { LEVELS, rampCss } from './palette.js';
import type { MapStyle, Palette } from './types.js';

interface MapLegendProps {
  readonly mapStyle: MapStyle;
  /** The weight that has the last colour. */
  readonly maximum: number;
  readonly messages: FigureMessages;
}

/** Both ends and the middle of the ramp, with the weights there. */
export function legendTicks(
  { scale }: MapStyle,
  maximum: number,
  locale: string,
): { place: number; label: string }[] {
  return [0, 0.5, 1].map((place) => {
    const label = decimal(unscaled(scale, place, maximum), locale);
    return { place, label: scale === 'log' && place === 0 ? `≤ ${label}` : label };
  });
}

/** Ticks are round numbers or halves and quarters of them. */
function decimal(weight: number, locale: string): string {
  if (weight > 0 && weight < 0.001) return weight.toExponential(0).replace('e-', 'e−');
  return significantNumber(weight, locale);
}

/** The ramp as a CSS gradient of sixteen stops: no eye tells it from all 256. */
export function rampGradient(palette: Palette): string {
  const stops = Array.from({ length: 17 }, (_, i) =>
    rampCss(palette, Math.min(LEVELS - 1, i * 16)),
  );
  return `linear-gradient(to right, ${stops.join(', ')})`;
}

export function MapLegend({ mapStyle, maximum, messages }: MapLegendProps) {
  return (
    <div class="kv-legend">
      <div class="kv-legend-scale">
        <span class="kv-legend-name">
          {messages.legend.weight}, {messages.controls.scales[mapStyle.scale]}
        </span>
        <div class="kv-legend-ramp" style={{ background: rampGradient(mapStyle.palette) }} />
        <div class="kv-legend-ticks">
          {legendTicks(mapStyle, maximum, messages.locale).map(({ place, label }) => (
            <span
              key={place}
              style={{ left: `${100 * place}%` }}
              data-end={place === 0 ? 'start' : place === 1 ? 'end' : ''}
            >
              {label}
            </span>
          ))}
        </div>
      </div>
      <span class="kv-legend-mark">
        <span class="kv-swatch kv-hatched" aria-hidden="true" />
        {messages.legend.masked}
      </span>
      {mapStyle.hideSink && (
        <span class="kv-legend-mark">
          <span class="kv-swatch kv-hatched" aria-hidden="true" />
          {messages.legend.sinkHidden}
        </span>
      )}
    </div>
  );
}
