// The texts and the numbers of the page in the chosen language.
import { computed } from '@preact/signals';
import { inBinaryUnit, numbersIn } from '../format.js';
import { locale } from '../settings.js';
import { en, type Messages } from './en.js';
import { ru } from './ru.js';

const messages: Readonly<Record<'en' | 'ru', Messages>> = { en, ru };

export const text = computed<Messages>(() => messages[locale.value]);

export const numbers = computed(() => numbersIn(locale.value));

/** Bytes with their unit, to three significant digits. */
export function byteSize(bytes: number): string {
  const { value, unit } = inBinaryUnit(bytes);
  return text.value.bytes(numbers.value.significant(value), unit);
}

export type { Messages };
