// Numbers as people read them, in the chosen language.
import { computed } from '@preact/signals';
import { text } from './i18n/index.js';

const formats = computed(() => {
  const { number } = text.value;
  return {
    whole: new Intl.NumberFormat(number),
    percent: new Intl.NumberFormat(number, {
      style: 'percent',
      minimumFractionDigits: 1,
      maximumFractionDigits: 1,
    }),
    wholePercent: new Intl.NumberFormat(number, { style: 'percent', maximumFractionDigits: 0 }),
    three: new Intl.NumberFormat(number, { maximumSignificantDigits: 3 }),
    four: new Intl.NumberFormat(number, { minimumFractionDigits: 4, maximumFractionDigits: 4 }),
    two: new Intl.NumberFormat(number, { minimumFractionDigits: 2, maximumFractionDigits: 2 }),
  };
});

export const whole = (value: number): string => formats.value.whole.format(value);
export const percent = (value: number): string => formats.value.percent.format(value);
/** How much of a whole is done, in whole percent; nothing while the whole is not known. */
export const percentDone = (done: number, total: number): string =>
  total === 0 ? '' : formats.value.wholePercent.format(Math.floor((100 * done) / total) / 100);
/** Three significant digits. */
export const significant = (value: number): string => formats.value.three.format(value);
export const fixed2 = (value: number): string => formats.value.two.format(value);
export const fixed4 = (value: number): string => formats.value.four.format(value);

/** Milliseconds; more digits the shorter it took. */
export const duration = (value: number): string =>
  value >= 100
    ? whole(Math.round(value))
    : value >= 1
      ? formats.value.three.format(value)
      : formats.value.two.format(value);

export function byteSize(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB'] as const;
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return text.value.bytes(formats.value.three.format(value), units[unit] ?? 'GB');
}

/** A difference as it is: 0 is exact, anything else is shown by its power of ten. */
export const difference = (value: number): string => (value === 0 ? '0' : value.toExponential(2));
