// Parts of the page that are out of sight do not follow every token while playing. They catch up
// when they are scrolled to or when playing ends.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import type { RefCallback } from 'preact';
import { playing } from '../state/store.js';

export interface Sight {
  /** For the element whose being in sight counts. */
  readonly ref: RefCallback<HTMLElement>;
  /** `source`, or its last value while nobody could see it change. */
  follow<T>(source: ReadonlySignal<T>): ReadonlySignal<T>;
}

export function sight(): Sight {
  const inView = signal(true);
  const live = computed(() => inView.value || !playing.value);
  let observer: IntersectionObserver | undefined;
  return {
    ref: (element) => {
      observer?.disconnect();
      if (!element) return;
      observer = new IntersectionObserver(
        ([entry]) => (inView.value = entry?.isIntersecting ?? true),
        {
          // A little ahead of the scroll.
          rootMargin: '25%',
        },
      );
      observer.observe(element);
    },
    follow: <T>(source: ReadonlySignal<T>) => {
      let last: { readonly value: T } | undefined;
      return computed(() => {
        if (!live.value && last) return last.value;
        last = { value: source.value };
        return last.value;
      });
    },
  };
}
