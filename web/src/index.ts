/**
 * `kvlens`: the worker engine. See `Engine`.
 */
export { createEngine } from './engine/page/remote-engine.js';
export { computedReplayWork, computedCachedWork } from './work-formula.js';
export * from './engine-api.js';
export * from './errors.js';
export * from './types.js';
