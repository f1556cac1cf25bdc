/** Lets the worker see its messages: an abort, or another session's call. */
let channel: MessageChannel | undefined;

/** Resolves after the messages that have arrived so far; a timer would wait for 4 ms in browsers. */
export function breathe(): Promise<void> {
  channel ??= new MessageChannel();
  const { port1, port2 } = channel;
  return new Promise((resolve) => {
    port1.addEventListener('message', () => resolve(), { once: true });
    port1.start();
    port2.postMessage(null);
  });
}
