// The engine's worker, which tells how much memory JavaScript uses in its thread. `workerData` is a
// shared Float64Array of two: bytes at the start, and the most since, looked at with every message
// that the worker sends, hence with every report of progress.
import { MessagePort, workerData } from 'node:worker_threads';

import '../../dist/worker.js';
import { javaScriptBytes, javaScriptBytesInUse } from './javascript-memory.mjs';

const { postMessage } = MessagePort.prototype;
workerData[0] = javaScriptBytesInUse();
MessagePort.prototype.postMessage = function (...args) {
  workerData[1] = Math.max(workerData[1], javaScriptBytes());
  return postMessage.apply(this, args);
};
