/** Lets the worker see its messages: an abort, or another session's call. */
let channel: MessageChannel | undefined;
const waiting: (() => void)[] = [];

/** Resolves after the messages that have arrived so far. */
export function breathe(): Promise<void> {
  const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };
  if (setImmediate !== undefined) {
    // Node, which would deliver a port's own messages over and over before it looks at another
    // port.
    return new Promise((resolve) => void setImmediate(resolve));
  }
  // A timer would wait for 4 ms in browsers.
  channel ??= openChannel();
  const { port2 } = channel;
  return new Promise((resolve) => {
    waiting.push(resolve);
    port2.postMessage(null);
  });
}

function openChannel(): MessageChannel {
  const opened = new MessageChannel();
  // One message for each that waits, in their order.
  opened.port1.onmessage = () => waiting.shift()?.();
  return opened;
}
