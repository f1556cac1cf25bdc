// Whether a string is an address or a path is decided on the page, by what the page is.
import { afterEach, expect, test } from 'vitest';
import { portableSource } from '../../../dist/engine/page/portable-source.js';

const page = 'http://page.example/app/index.html';
const undo: (() => void)[] = [];
afterEach(() => {
  for (const each of undo.splice(0)) each();
});

/** Defines a global that is absent here, until the end of the test. */
function define(name: string, value: unknown): void {
  if (name in globalThis) return;
  Object.defineProperty(globalThis, name, { value, configurable: true });
  undo.push(() => delete (globalThis as Record<string, unknown>)[name]);
}

test('a page that defines process, as Electron does, is still a page', () => {
  define('process', { versions: { node: '20.0.0' } });
  define('document', {});
  define('location', { href: page });
  const url = new URL('models/x.gguf', location.href).href;
  expect(portableSource('models/x.gguf')).toEqual({ kind: 'one', file: { url } });
  expect(portableSource({ 'a.gguf': 'models/x.gguf' })).toEqual({
    kind: 'many',
    files: [['a.gguf', { url }]],
  });
});

test('an address is an address everywhere', () => {
  for (const url of ['https://models.example/x.gguf', 'blob:http://page.example/1']) {
    expect(portableSource(url)).toEqual({ kind: 'one', file: { url } });
    expect(portableSource(new URL(url))).toEqual({ kind: 'one', file: { url } });
  }
});

test.skipIf('document' in globalThis)('in Node other strings and file: addresses are paths', () => {
  for (const path of ['models/x.gguf', '/models/x.gguf', 'file:///models/x.gguf']) {
    expect(portableSource(path)).toEqual({ kind: 'one', file: { path } });
  }
});
