// Stands in for d3-interpolate, whose colours and strings are half of what d3-scale brings along:
// the scales of this page map numbers to numbers. vite.config.ts puts it in its place.
export type Interpolator = (t: number) => number;

export const interpolateNumber =
  (a: number, b: number): Interpolator =>
  (t) =>
    a * (1 - t) + b * t;

export const interpolateRound =
  (a: number, b: number): Interpolator =>
  (t) =>
    Math.round(a * (1 - t) + b * t);

export { interpolateNumber as interpolate };

export function piecewise(
  interpolate: typeof interpolateNumber,
  values: readonly number[],
): Interpolator {
  const parts = values.slice(1).map((value, index) => interpolate(values[index] ?? value, value));
  return (t) => {
    const part = Math.max(0, Math.min(parts.length - 1, Math.floor(t * parts.length)));
    return parts[part]?.(t * parts.length - part) ?? NaN;
  };
}
