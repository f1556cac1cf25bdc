// The service worker: the page without a network, and more threads on hosts that send no headers.
import { computed, signal } from '@preact/signals';

/** All files are stored. */
export const offlineReady = signal(false);

/** A reload would pass through the service worker, whose answers isolate the page. */
export const canReloadForThreads = computed(() => offlineReady.value && !crossOriginIsolated);

export function reloadForThreads(): void {
  location.reload();
}

export async function keepOffline(): Promise<void> {
  // The development server has no service worker; an insecure page may not have one.
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return;
  try {
    await navigator.serviceWorker.register(new URL('sw.js', document.baseURI));
    await navigator.serviceWorker.ready;
    offlineReady.value = true;
  } catch {
    // The page works all the same, with a network and on one thread.
  }
}
