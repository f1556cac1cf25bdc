// From a weight to a level of the colour ramp.
import { LEVELS } from './palette.js';
import type { ScaleKind } from './types.js';

/** Weights below this part of the maximum share level 0 of the logarithmic scale. */
export const LOG_DECADES = 4;

/** 0..1 for a weight in 0..maximum; what lies above is 1. */
export function scaled(kind: ScaleKind, weight: number, maximum: number): number {
  const part = Math.min(1, weight / maximum);
  if (kind === 'sqrt') return Math.sqrt(part);
  if (kind === 'log') return part > 0 ? Math.max(0, 1 + Math.log10(part) / LOG_DECADES) : 0;
  return part;
}

/** The weight at a place of the scale. */
export function unscaled(kind: ScaleKind, place: number, maximum: number): number {
  if (kind === 'sqrt') return place * place * maximum;
  if (kind === 'log') return maximum * 10 ** (LOG_DECADES * (place - 1));
  return place * maximum;
}

/** The level of a weight, 0..255. */
export function levelOf(kind: ScaleKind, weight: number, maximum: number): number {
  return Math.round(scaled(kind, weight, maximum) * (LEVELS - 1));
}

const roundNumbers = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

/** The smallest of 0.001, 0.002, 0.005, ... 0.5, 1 that `weight` does not exceed. */
export function niceMaximum(weight: number): number {
  return roundNumbers.find((round) => weight <= round) ?? 1;
}

/** The largest weight of a row, column 0 left out. */
export function rowMaximum(row: ArrayLike<number> | undefined): number {
  let largest = 0;
  for (let key = 1; key < (row?.length ?? 0); ++key) largest = Math.max(largest, row![key]!);
  return largest;
}
