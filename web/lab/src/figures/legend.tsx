// The colour ramp with its scale, and what the marks that are not colours mean.
import { numbersIn } from '../format.js';
import type { FigureMessages } from '../i18n/en-figures.js';
import { unscaled } from './colour-scale.js';
import { rampStops } from './palette.js';
import { DOTS, HATCH, Patterns } from './patterns.js';
import type { MapStyle } from './types.js';

interface MapLegendProps {
  readonly mapStyle: MapStyle;
  /** The weight that has the last colour. */
  readonly maximum: number;
  readonly messages: FigureMessages;
}

/** Size of `LegendRamp`. */
export const RAMP_WIDTH = 240;
export const RAMP_HEIGHT = 46;

/** Both ends and the middle of the ramp, with the weights there. */
function ticks({ scale }: MapStyle, maximum: number, locale: string) {
  return [0, 0.5, 1].map((place) => {
    const label = decimal(unscaled(scale, place, maximum), locale);
    return { place, label: scale === 'log' && place === 0 ? `≤ ${label}` : label };
  });
}

/** Ticks are round numbers or halves and quarters of them. */
function decimal(weight: number, locale: string): string {
  if (weight > 0 && weight < 0.001) return weight.toExponential(0).replace('e-', 'e−');
  return numbersIn(locale).significant(weight);
}

export function LegendRamp({ mapStyle, maximum, messages }: MapLegendProps) {
  const id = `kv-ramp-${mapStyle.palette}`;
  return (
    <g class="kv-legend-text">
      <linearGradient id={id}>
        {rampStops(mapStyle.palette).map((colour, i, all) => (
          <stop key={i} offset={i / (all.length - 1)} stop-color={colour} />
        ))}
      </linearGradient>
      <text x="0" y="11">
        {messages.legend.weight}, {messages.controls.scales[mapStyle.scale]}
      </text>
      <rect
        class="kv-legend-ramp"
        x="0.5"
        y="17.5"
        width={RAMP_WIDTH - 1}
        height="10"
        fill={`url(#${id})`}
      />
      {ticks(mapStyle, maximum, messages.locale).map(({ place, label }) => (
        <text
          key={place}
          x={place * RAMP_WIDTH}
          y={RAMP_HEIGHT - 5}
          text-anchor={place === 0 ? 'start' : place === 1 ? 'end' : 'middle'}
        >
          {label}
        </text>
      ))}
    </g>
  );
}

/** The marks that are not colours. `partial`: some rows were not captured. */
export function legendMarks(
  { mapStyle, messages }: Pick<MapLegendProps, 'mapStyle' | 'messages'>,
  partial: boolean,
): readonly { readonly fill: string; readonly label: string }[] {
  const { masked, notCaptured, sinkHidden } = messages.legend;
  return [
    { fill: HATCH, label: masked },
    ...(partial ? [{ fill: DOTS, label: notCaptured }] : []),
    ...(mapStyle.hideSink ? [{ fill: HATCH, label: sinkHidden }] : []),
  ];
}

export function LegendSwatch({ fill }: { readonly fill: string }) {
  return <rect class="kv-swatch" x="0.5" y="0.5" width="19" height="11" fill={fill} />;
}

export function MapLegend({ partial, ...props }: MapLegendProps & { readonly partial: boolean }) {
  return (
    <div class="kv-legend">
      <svg width={RAMP_WIDTH} height={RAMP_HEIGHT} role="presentation">
        <Patterns />
        <LegendRamp {...props} />
      </svg>
      {legendMarks(props, partial).map(({ fill, label }) => (
        <span key={label} class="kv-legend-mark">
          <svg width="20" height="12" aria-hidden="true">
            <LegendSwatch fill={fill} />
          </svg>
          {label}
        </span>
      ))}
    </div>
  );
}
