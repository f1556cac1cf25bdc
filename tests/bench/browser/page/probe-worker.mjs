// One thread of the probe, with memory of its own.
import { dotOperations, probeModule } from './probe-module.mjs';

const pageBytes = 65536;
const minMilliseconds = 300;
// A call takes about a millisecond: one that is running keeps the code that it was called with.
const dotTurns = 200_000;
const streamBytes = 4 * 2 ** 20;

let exports;
let bytes;

/** Amount of `work()` a second, over as many turns as take long enough for the clock. */
function rate(work) {
  const start = performance.now();
  let amount = 0;
  let milliseconds;
  do {
    amount += work();
    milliseconds = performance.now() - start;
  } while (milliseconds < minMilliseconds);
  return (amount * 1000) / milliseconds;
}

function streamAll() {
  let begin = 0;
  for (; begin + streamBytes <= bytes; begin += streamBytes)
    exports.stream(begin, begin + streamBytes);
  return begin;
}

function dotSome() {
  exports.dot(dotTurns);
  return dotTurns * dotOperations;
}

const handlers = {
  start(options) {
    bytes = options.bytes;
    const pages = Math.ceil(bytes / pageBytes);
    const memory = new WebAssembly.Memory({ initial: pages });
    // Pages that were never written are all the same page of zeros.
    new Uint8Array(memory.buffer).fill(1);
    exports = new WebAssembly.Instance(new WebAssembly.Module(probeModule(pages)), {
      env: { memory },
    }).exports;
    // Functions are optimised after some calls, in the background.
    rate(streamAll);
    rate(dotSome);
  },
  /** Bytes read a second. */
  bandwidth: () => rate(streamAll),
  /** Integer operations a second. */
  int8: () => rate(dotSome),
};

onmessage = ({ data: { method, options } }) => {
  try {
    postMessage({ value: handlers[method](options) });
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
