// Settings of the page itself, remembered between visits.
import { computed, effect, signal, type Signal } from '@preact/signals';
import type { Palette } from './figures/types.js';

export type Locale = 'en' | 'ru';
export type Theme = 'system' | 'light' | 'dark';

function remembered<T>(name: string, first: T, isValid: (value: unknown) => value is T): Signal<T> {
  const key = `kvlens.${name}`;
  let value = first;
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? 'null');
    if (isValid(stored)) value = stored;
  } catch {
    // Storage is closed to this page, or holds something else: the first value will do.
  }
  const setting = signal(value);
  effect(() => {
    const text = JSON.stringify(setting.value);
    try {
      localStorage.setItem(key, text);
    } catch {
      // The choice then lasts as long as the page.
    }
  });
  return setting;
}

const oneOf =
  <T extends string>(...values: T[]) =>
  (value: unknown): value is T =>
    values.includes(value as T);
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';

const spokenHere: Locale = navigator.languages.some((language) => /^ru\b/i.test(language))
  ? 'ru'
  : 'en';

export const locale = remembered<Locale>('locale', spokenHere, oneOf('en', 'ru'));
export const theme = remembered<Theme>('theme', 'system', oneOf('system', 'light', 'dark'));
export const colourMap = remembered<Palette>(
  'colourMap',
  'cividis',
  oneOf('cividis', 'inferno', 'greys'),
);
/** Single-letter shortcuts can be turned off: they get in the way of speech input. */
export const shortcuts = remembered<boolean>('shortcuts', true, isBoolean);

const darkSystem = matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(darkSystem.matches);
darkSystem.addEventListener('change', () => (systemIsDark.value = darkSystem.matches));

export const isDark = computed(
  () => theme.value === 'dark' || (theme.value === 'system' && systemIsDark.value),
);

/** Keeps the document's attributes in step with the choices. */
export function followSettings(): void {
  effect(() => {
    document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light';
  });
  effect(() => {
    document.documentElement.lang = locale.value;
  });
}
