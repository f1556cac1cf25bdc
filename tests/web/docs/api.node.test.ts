// The API reference, which `npm run docs` makes from the declarations in dist/.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../../support/packed.js';

let folder: string;
let pages: string[];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kvlens-api-'));
  // It fails for a declaration without a comment and for a link in a comment that leads nowhere.
  execFileSync('node', ['tools/build-docs.mjs', folder], { cwd: root, stdio: 'pipe' });
  pages = readdirSync(folder, { recursive: true, encoding: 'utf8' });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Names that an entry point exports, as the compiler sees them. */
function exportsOf(entry: string): string[] {
  const path = join(root, `dist/${entry}.d.ts`);
  const program = ts.createProgram([path], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    types: [],
  });
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(program.getSourceFile(path)!)!;
  return checker.getExportsOfModule(module).map(({ name }) => name);
}

test.each(['index', 'core'])('every name that %s exports has its place', (entry) => {
  const text = pages
    .filter((path) => path.endsWith('.md') && path.startsWith(entry))
    .map((path) => readFileSync(join(folder, path), 'utf8'))
    .join('\n');
  const names = exportsOf(entry);
  expect(names.length).toBeGreaterThan(30);
  const missing = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
  expect(missing).toEqual([]);
});

test('the page that docs/api.md names is there', () => {
  expect(pages).toContain('README.md');
});
