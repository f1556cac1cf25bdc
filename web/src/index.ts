/** `kvlens`: the worker engine. Start with `createEngine`. */
export { createEngine } from './engine/page/remote-engine.js';
export { computedReplayWork } from './work-formula.js';
export type * from './engine-api.js';
export * from './errors.js';
export * from './types.js';
