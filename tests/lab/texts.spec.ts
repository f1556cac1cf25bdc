// The texts of the page: complete in both languages, used, and nowhere but in i18n/.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { en } from '../../web/lab/src/i18n/en.js';
import { ru } from '../../web/lab/src/i18n/ru.js';
import { expect, test } from './lab.js';

const source = fileURLToPath(new URL('../../web/lab/src', import.meta.url));

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.startsWith('i18n/'))
  .map((name) => ({ name, text: readFileSync(`${source}/${name}`, 'utf8') }));

interface Leaf {
  readonly path: string;
  readonly value: unknown;
}

const leaves = (value: object, path = ''): Leaf[] =>
  Object.entries(value).flatMap(([key, entry]: [string, unknown]) =>
    typeof entry === 'object' && entry !== null
      ? leaves(entry, `${path}${key}.`)
      : [{ path: `${path}${key}`, value: entry }],
  );

test('both languages have the same texts, none of them empty', () => {
  const shape = (of: object) => leaves(of).map(({ path, value }) => `${path}: ${typeof value}`);
  expect(shape(ru)).toEqual(shape(en));
  for (const { path, value } of [...leaves(en), ...leaves(ru)]) expect(value, path).not.toBe('');
});

test('every text is used', () => {
  const all = files.map(({ text }) => text).join('\n');
  // `t.hows[how]` reads every text of its table.
  const tables = new Set([...all.matchAll(/\.(\w+)\[/g)].map((found) => found[1] ?? ''));
  const unused = leaves(en)
    .map(({ path }) => path.split('.'))
    .filter((path) => {
      if (path.some((key) => tables.has(key) || /^\d+$/.test(key))) return false;
      const key = path.at(-1) ?? '';
      // The list of keys is shown as it is.
      if (path[0] === 'keys' && path[1] === 'list') return false;
      return !new RegExp(`\\.${key}\\b|[{,]\\s*${key}\\b`).test(all);
    })
    .map((path) => path.join('.'));
  expect(unused).toEqual([]);
});

test('Russian nouns agree with their numbers', () => {
  const forms = (say: (n: number) => string) => [1, 2, 5, 11, 21, 22].map(say);
  const rows = ['1 строка', '2 строки', '5 строк', '11 строк', '21 строка', '22 строки'];
  expect(forms(ru.timeline.rows)).toEqual(rows);
  expect(forms((n) => ru.figures.thumbnails.caption(1, n).split(',')[0] ?? '')).toEqual(rows);
  expect(forms(ru.prompt.tokens)).toEqual([
    '1 токен',
    '2 токена',
    '5 токенов',
    '11 токенов',
    '21 токен',
    '22 токена',
  ]);
  expect(forms(ru.timeline.unchanged)[4]).toBe('21 старая строка не изменилась');
});

test('no text stands outside of i18n/', () => {
  // Formats and keys are the same in every language.
  const names = new Set(['SVG', 'PNG', 'CSV', 'kvlens', 'EN', 'RU', 'kvLen', 'id']);
  const spoken = /^(aria-label|aria-valuetext|aria-roledescription|title|placeholder|alt)$/;
  const found: string[] = [];
  for (const { name, text } of files.filter((file) => file.name.endsWith('.tsx'))) {
    const tree = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
    const visit = (node: ts.Node): void => {
      if (ts.isJsxText(node)) {
        const words = node.text.match(/\p{L}{2,}/gu) ?? [];
        for (const word of words) if (!names.has(word)) found.push(`${name}: ${word}`);
      }
      if (
        ts.isJsxAttribute(node) &&
        spoken.test(node.name.getText()) &&
        node.initializer &&
        ts.isStringLiteral(node.initializer)
      )
        found.push(`${name}: ${node.getText()}`);
      ts.forEachChild(node, visit);
    };
    visit(tree);
  }
  expect(found).toEqual([]);
});
