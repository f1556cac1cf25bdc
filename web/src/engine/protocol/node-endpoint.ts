/** Comlink speaks the browser's events; a port of `node:worker_threads` has Node's. */
import type { Endpoint } from 'comlink';

/** What both ends of a Node worker have. */
export interface NodePort {
  postMessage(message: unknown, transfer?: Transferable[]): void;
  on(type: 'message', listener: (data: unknown) => void): unknown;
  off(type: 'message', listener: (data: unknown) => void): unknown;
}

export function nodeEndpoint(port: NodePort): Endpoint {
  const listeners = new Map<EventListenerOrEventListenerObject, (data: unknown) => void>();
  return {
    postMessage: (message, transfer) => port.postMessage(message, transfer),
    addEventListener(_type, listener) {
      const onMessage = (data: unknown): void => {
        const event = { data } as MessageEvent;
        if (typeof listener === 'function') listener(event);
        else listener.handleEvent(event);
      };
      listeners.set(listener, onMessage);
      port.on('message', onMessage);
    },
    removeEventListener(_type, listener) {
      const onMessage = listeners.get(listener);
      if (onMessage !== undefined) port.off('message', onMessage);
      listeners.delete(listener);
    },
  };
}
