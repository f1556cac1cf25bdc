// Linear and logarithmic axes: round ticks, and where values lie.

export type Domain = readonly [low: number, high: number];

/** The step of 1, 2 or 5 times a power of ten that puts about `count` ticks into the domain. */
function tickStep([low, high]: Domain, count: number): number {
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const error = raw / power;
  const factor =
    error >= Math.sqrt(50) ? 10 : error >= Math.sqrt(10) ? 5 : error >= Math.SQRT2 ? 2 : 1;
  return factor * power;
}

/** Round numbers in the domain, about `count` of them. */
export function ticks(domain: Domain, count: number): number[] {
  const [low, high] = domain;
  if (!(high > low)) return [low];
  const step = tickStep(domain, count);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  // Dividing by a whole number keeps 0.3 from becoming 0.30000000000000004.
  const at = (i: number) => (step < 1 ? i / Math.round(1 / step) : i * step);
  return Array.from({ length: last - first + 1 }, (_, i) => at(first + i));
}

/** The domain extended to round numbers. */
export function niceLinear(domain: Domain): Domain {
  const step = tickStep(domain, 10);
  return [Math.floor(domain[0] / step) * step, Math.ceil(domain[1] / step) * step];
}

/** The domain extended to powers of ten. */
export const niceLog = ([low, high]: Domain): Domain => [
  10 ** Math.floor(Math.log10(low)),
  10 ** Math.ceil(Math.log10(high)),
];

/**
 * Ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, the powers alone where there are too
 * many, and evenly spaced numbers where there are hardly any.
 */
export function logTicks(domain: Domain, count: number): number[] {
  const [low, high] = domain;
  const begin = Math.floor(Math.log10(low));
  const length = Math.ceil(Math.log10(high)) + 1 - begin;
  const inside = (digits: readonly number[]) =>
    Array.from({ length }, (_, i) => digits.map((digit) => digit * 10 ** (begin + i)))
      .flat()
      .filter((value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
  const round = inside([1, 2, 5]);
  if (round.length < 3) return ticks(domain, Math.min(count, 5));
  if (round.length <= count) return round;
  const powers = inside([1]);
  const every = Math.ceil(powers.length / count);
  return powers.filter((_, i) => i % every === 0);
}

/** Maps the domain to `from..to`. */
export function scaleOf(
  [low, high]: Domain,
  [from, to]: readonly [number, number],
  logarithmic: boolean,
): (value: number) => number {
  const place = logarithmic ? Math.log : (value: number) => value;
  const begin = place(low);
  const length = place(high) - begin;
  return (value) => from + ((place(value) - begin) / length) * (to - from);
}
