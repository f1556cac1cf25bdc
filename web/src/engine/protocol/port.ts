/** One end of the line between page and worker: a browser's worker or scope, or Node's. */

interface NodePort {
  on(type: 'message', listener: (data: unknown) => void): unknown;
}

interface BrowserPort {
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
}

export type Port = (NodePort | BrowserPort) & {
  postMessage(message: unknown, transfer?: Transferable[]): void;
};

/** Calls `listener` with each message that arrives at `port`, in order. */
export function onMessage(port: Port, listener: (data: unknown) => void): void {
  // Node's ports have `on`, which keeps the process alive as long as the port is open.
  if ('on' in port) port.on('message', listener);
  else port.addEventListener('message', ({ data }) => listener(data));
}
