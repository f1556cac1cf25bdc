/**
 * `kvlens/core`: the synchronous level. See `Core`.
 */
export { loadCore } from './core/core.js';
export { computedReplayWork } from './work-formula.js';
export * from './core-api.js';
export * from './errors.js';
export * from './types.js';
