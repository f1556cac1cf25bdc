// How much memory JavaScript uses in this thread of Node, the module's own memory left out.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

// Bytes of the heap and of array buffers, garbage that has not been collected yet included.
export function javaScriptBytes() {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

// The same without garbage.
export function javaScriptBytesInUse() {
  collect();
  return javaScriptBytes();
}
