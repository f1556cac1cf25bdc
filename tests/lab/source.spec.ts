// What the sources of web/ may not do.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from './lab.js';

const web = fileURLToPath(new URL('../../web', import.meta.url));

const sources = (folder: string): { readonly path: string; readonly text: string }[] =>
  readdirSync(`${web}/${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(tsx?|mjs|html|css)$/.test(name))
    .map((name) => ({
      path: `${folder}/${name}`,
      text: readFileSync(`${web}/${folder}/${name}`, 'utf8'),
    }));

test('no number is made up: Math.random is nowhere in web/', () => {
  const all = [...sources('src'), ...sources('lab')];
  expect(all.length).toBeGreaterThan(50);
  expect(
    all
      .filter(({ text }) => text.includes('Math.random') || text.includes('getRandomValues'))
      .map(({ path }) => path),
  ).toEqual([]);
});

test('the Lab imports the package by its public entry points alone', () => {
  const allowed = /^(kvlens|kvlens\/core|preact(\/hooks)?|@preact\/signals|vite)$/;
  const wrong = sources('lab').flatMap(({ path, text }) =>
    [...text.matchAll(/(?:from|import)\s*\(?\s*'([^'.][^']*|\.[^']*)'/g)]
      .map((found) => found[1] ?? '')
      .filter((name) => {
        if (name.startsWith('node:') && path === 'lab/vite.config.ts') return false;
        // A relative import may not leave the Lab.
        if (name.startsWith('.'))
          return new URL(name, `file:///${path}`).pathname.startsWith('/lab/') === false;
        return !allowed.test(name);
      })
      .map((name) => `${path}: ${name}`),
  );
  expect(wrong).toEqual([]);
});

test('no source names an address elsewhere', () => {
  const namespaces = /http:\/\/www\.w3\.org\//;
  const found = sources('lab').flatMap(({ path, text }) =>
    [...text.matchAll(/https?:\/\/[\w.-]+/g)]
      .map(([address]) => `${path}: ${address}`)
      .filter((line) => !namespaces.test(`${line}/`)),
  );
  expect(found).toEqual([]);
});

test('no control is disabled: one that cannot act stays in the tab order and says why', () => {
  const found = sources('lab')
    .filter(({ path }) => path.endsWith('.tsx'))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/(?<!aria-)\bdisabled(=|\s*\/?>)/g)].map(() => path),
    );
  expect(found).toEqual([]);
});

test('a file has one idea: fewer than 600 lines', () => {
  const long = sources('lab').filter(({ text }) => text.split('\n').length > 600);
  expect(long.map(({ path }) => path)).toEqual([]);
});
