/**
 * `kvlens/worker`: the worker that `createEngine` starts. It serves the calls of its page; the
 * messages are described in engine/protocol/messages.ts.
 */
import type { CallRequest, ToPage, ToWorker } from './engine/protocol/messages.js';
import { toPlainError } from './engine/protocol/plain-error.js';
import { onMessage, type Port } from './engine/protocol/port.js';
import { transferableBuffers } from './engine/protocol/transfer.js';
import { RunningCall } from './engine/worker/call.js';
import { Service } from './engine/worker/service.js';

const service = new Service();
const running = new Map<number, RunningCall>();

function serve(port: Port): void {
  const send = (message: ToPage, moved: unknown): void =>
    port.postMessage(message, transferableBuffers(moved));

  const run = async (request: CallRequest): Promise<void> => {
    const { id, listens, abort } = request;
    const call = new RunningCall(listens, (event) => send({ id, event }, event));
    running.set(id, call);
    if (abort !== undefined) call.abort(abort);
    try {
      const reply = await service.serve(request, call);
      send({ id, reply }, reply);
    } catch (error) {
      send({ id, error: toPlainError(error) }, undefined);
    } finally {
      running.delete(id);
    }
  };

  onMessage(port, (message) => {
    const received = message as ToWorker;
    if ('method' in received) void run(received);
    else if ('abort' in received) running.get(received.id)?.abort(received.abort);
    else running.get(received.id)?.handled();
  });
}

async function pagePort(): Promise<Port> {
  if ('WorkerGlobalScope' in globalThis) return globalThis as unknown as Port;
  // Node. The name is kept out of the import so that bundlers do not try to resolve it.
  const threads = 'node:worker_threads';
  const { parentPort } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ threads)) as {
    parentPort: Port;
  };
  return parentPort;
}

// Not awaited at the top level, because a bundler may turn this file into a classic worker.
void pagePort().then(serve);
