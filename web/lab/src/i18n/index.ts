// The texts in the chosen language.
import { computed } from '@preact/signals';
import { locale } from '../settings.js';
import { en, type Messages } from './en.js';
import { ru } from './ru.js';

const messages: Readonly<Record<'en' | 'ru', Messages>> = { en, ru };

export const text = computed<Messages>(() => messages[locale.value]);

export type { Messages };
