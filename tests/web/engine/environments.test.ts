// Where the engine's worker cannot start, createEngine says why and what to do.
import { createEngine } from 'kvlens';
import { afterEach, expect, test } from 'vitest';
import { rejection } from '../../support/kvlens.js';

const real = globalThis.Worker as typeof Worker | undefined;
afterEach(() => {
  if (real) globalThis.Worker = real;
  else delete (globalThis as { Worker?: unknown }).Worker;
  delete (globalThis as { WorkerGlobalScope?: unknown }).WorkerGlobalScope;
});

test('a page that refuses the worker: another origin, a policy, Trusted Types', async () => {
  for (const error of [
    new DOMException("cannot be accessed from origin 'null'", 'SecurityError'),
    new TypeError("This document requires 'TrustedScriptURL' assignment."),
  ]) {
    globalThis.Worker = function () {
      throw error;
    } as never;
    const refused = await rejection('unsupported_environment', createEngine());
    expect(refused.message).toContain(error.message);
    expect(refused.message).toContain('createWorker');
    expect(refused.cause).toBe(error);
  }
});

test('a scope without workers: a service worker or a shared worker', async () => {
  (globalThis as { Worker?: unknown }).Worker = undefined;
  (globalThis as { WorkerGlobalScope?: unknown }).WorkerGlobalScope = {};
  const { message } = await rejection('unsupported_environment', createEngine());
  expect(message).toContain('kvlens/core');
});

test.skipIf(real === undefined)(
  'a worker whose file is missing: createEngine says so',
  async () => {
    const createWorker = (): Worker => new Worker(new URL('no-such-worker.js', location.href));
    const { message } = await rejection('worker_died', createEngine({ createWorker }));
    expect(message).toContain('its file cannot be loaded');
    expect(message).toContain('createWorker');
  },
);
