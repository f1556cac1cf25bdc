// The shape of the repository: what lies at the top, and who may know of Emscripten.
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter(Boolean);

test('the top level has seven folders, and the files that tools and readers look for', () => {
  const top = new Set(
    files.filter((path) => !path.startsWith('.')).map((path) => path.split('/')[0]!),
  );
  const folders = ['core', 'docs', 'examples', 'tests', 'tools', 'wasm', 'web'];
  const named = [
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'LICENSE',
    'README.md',
    'THIRD_PARTY_NOTICES.md',
  ];
  const configuration = [
    'CMakeLists.txt',
    'CMakePresets.json',
    'package-lock.json',
    'package.json',
  ];
  const allowed = new Set([...folders, ...named, ...configuration, 'vitest.config.ts']);
  expect([...top].filter((name) => !allowed.has(name))).toEqual([]);
});

test('the core is built in layers: no include points upwards', () => {
  const layers = ['base', 'ops', 'model', 'forward', 'session'];
  const sources = files.filter((path) => /^core\/src\/.*\.(h|cc)$/.test(path));
  const folderOf = (path: string): string => path.split('/')[2]!;
  for (const path of sources) expect(layers, path).toContain(folderOf(path));
  // A public header belongs to the layer of the source file of its name.
  const layerOfHeader = (name: string): string => {
    const source = sources.find((path) => path.endsWith(`/${name}.cc`));
    return source === undefined ? 'base' : folderOf(source);
  };
  const headers = files.filter((path) => /^core\/include\/kvlens\/.*\.h$/.test(path));
  const layerOf = (path: string): number =>
    layers.indexOf(
      path.startsWith('core/src/') ? folderOf(path) : layerOfHeader(/(\w+)\.h$/.exec(path)![1]!),
    );
  for (const path of [...sources, ...headers]) {
    const text = readFileSync(`${root}/${path}`, 'utf8');
    for (const [, folder, name] of text.matchAll(/#include "(?:(\w+)\/)(\w+)\.h"/g)) {
      const layer = folder === 'kvlens' ? layerOfHeader(name!) : folder!;
      expect(layers.indexOf(layer), `${path} includes ${folder}/${name}.h`).toBeLessThanOrEqual(
        layerOf(path),
      );
    }
  }
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

test('no file is larger than 2 MB, and the fixtures are below 24 MB', () => {
  const sizes = files.map((path) => [path, statSync(`${root}/${path}`).size] as const);
  for (const [path, size] of sizes) expect(size, path).toBeLessThanOrEqual(2_000_000);
  const fixtures = sizes
    .filter(([path]) => path.startsWith('tests/fixtures/'))
    .reduce((sum, [, size]) => sum + size, 0);
  expect(fixtures).toBeLessThan(24_000_000);
});
