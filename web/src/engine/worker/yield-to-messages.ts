let channel: MessageChannel | undefined;
const waiting: (() => void)[] = [];

/**
 * Resolves once the messages that have arrived so far have been handled, so that a long call lets
 * the worker see an abort or a call of another session.
 */
export function yieldToMessages(): Promise<void> {
  const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };
  if (setImmediate !== undefined) {
    // Node delivers all messages of one port before it looks at another port, so a channel would
    // starve the page's messages.
    return new Promise((resolve) => void setImmediate(resolve));
  }
  // In browsers a timer would wait for at least 4 ms.
  channel ??= openChannel();
  const { port2 } = channel;
  return new Promise((resolve) => {
    waiting.push(resolve);
    port2.postMessage(null);
  });
}

function openChannel(): MessageChannel {
  const opened = new MessageChannel();
  // One message wakes one waiting call, in order.
  opened.port1.onmessage = () => waiting.shift()?.();
  return opened;
}
