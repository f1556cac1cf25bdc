/**
 * `kvlens/worker`: the worker that `createEngine` starts. It does nothing but answer its page.
 */
import { expose, transfer, type Endpoint } from 'comlink';

import { nodeEndpoint, type NodePort } from './engine/protocol/node-endpoint.js';
import {
  toPlainError,
  type CallEvent,
  type Reply,
  type WorkerPort,
} from './engine/protocol/messages.js';
import { transferableBuffers } from './engine/protocol/transfer.js';
import { Service, type Call } from './engine/worker/service.js';

const service = new Service();
const running = new Map<number, AbortController>();
let send: (callId: number, event: CallEvent) => Promise<void> = () => Promise.resolve();

const port: WorkerPort = {
  listen(onEvent) {
    // What the page's own callback throws is the page's to deal with.
    send = (callId, event) => {
      const buffers = event.kind === 'token' ? transferableBuffers(event.token) : [];
      return Promise.resolve(onEvent(callId, transfer(event, buffers))).catch(() => {});
    };
  },

  async call(callId, method, args): Promise<Reply> {
    const controller = new AbortController();
    running.set(callId, controller);
    // Events travel by a port of their own: the reply waits until the last of them has arrived.
    let arrived: Promise<void> | undefined;
    const call: Call = {
      signal: controller.signal,
      emit: (event) => (arrived = send(callId, event)),
    };
    try {
      const run = service[method as keyof Service] as (call: Call, ...args: unknown[]) => unknown;
      const value = await run.call(service, call, ...args);
      return transfer({ ok: true, value }, transferableBuffers(value));
    } catch (error) {
      return { ok: false, error: toPlainError(error) };
    } finally {
      running.delete(callId);
      await arrived;
    }
  },

  abort(callId, reason) {
    running.get(callId)?.abort(reason);
  },
};

async function endpoint(): Promise<Endpoint> {
  if ('WorkerGlobalScope' in globalThis) return globalThis as unknown as Endpoint;
  // Node. The names are kept from bundlers, which would look for them.
  const threads = 'node:worker_threads';
  const { parentPort } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ threads)) as {
    parentPort: NodePort;
  };
  return nodeEndpoint(parentPort);
}

// Not awaited at the top level, which workers that bundlers make of this may not have.
void endpoint().then((end) => expose(port, end));
