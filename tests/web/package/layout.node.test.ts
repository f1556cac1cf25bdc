// The shape of the repository: what lies at the top, and who may know of Emscripten.
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0').filter(Boolean);

test('the top level has four folders, and the files that tools and readers look for', () => {
  const top = new Set(files.filter((path) => !path.startsWith('.')).map((path) => path.split('/')[0]!));
  expect([...top].sort()).toEqual([
    'CHANGELOG.md', 'CMakeLists.txt', 'CMakePresets.json', 'CONTRIBUTING.md', 'LICENSE', 'README.md',
    'core', 'package-lock.json', 'package.json', 'tests', 'vitest.config.ts', 'wasm', 'web',
  ]);
});

test('no file outside wasm/ includes a header of Emscripten, and the core does not know of it', () => {
  const sources = files.filter((path) => /\.(h|cc)$/.test(path) && !path.startsWith('wasm/'));
  expect(sources.length).toBeGreaterThan(50);
  for (const path of sources) {
    const text = readFileSync(`${root}/${path}`, 'utf8');
    expect(text, path).not.toMatch(/#include\s*[<"]emscripten/);
    if (path.startsWith('core/')) expect(text, path).not.toMatch(/emscripten/i);
  }
});

test('no file is larger than 2 MB, and the fixtures are below 12 MB', () => {
  const sizes = files.map((path) => [path, statSync(`${root}/${path}`).size] as const);
  for (const [path, size] of sizes) expect(size, path).toBeLessThanOrEqual(2_000_000);
  const fixtures = sizes.filter(([path]) => path.startsWith('tests/fixtures/')).reduce((sum, [, size]) => sum + size, 0);
  expect(fixtures).toBeLessThan(12_000_000);
});
