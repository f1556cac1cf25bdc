// Statements that were once untrue: each is gone, or what it says holds.
import { expect, test } from 'vitest';
import { readText, trackedFiles } from '../../support/markdown.js';

const sources = (pattern: RegExp): string[] => trackedFiles.filter((path) => pattern.test(path));
const anyMatches = (paths: readonly string[], pattern: RegExp): string[] =>
  paths.filter((path) => pattern.test(readText(path)));
const everything = sources(/\.(md|h|cc|tsx?)$/).filter((path) => !path.startsWith('tests/'));

test('the core uses nothing of a platform, or does not say so', () => {
  const includes = anyMatches(sources(/^core\/.*\.(h|cc)$/), /#include <(pthread|unistd|sys\/)/);
  if (includes.length > 0)
    expect(readText('core/README.md')).not.toMatch(/nothing of any platform/);
});

test('ops include no header of a configuration, a model, a cache or a session', () => {
  const ops = sources(/^core\/src\/ops\//);
  expect(ops.length).toBeGreaterThan(20);
  expect(anyMatches(ops, /#include "(kvlens\/(config|model|kv_cache|session)\.h|model\/)/)).toEqual(
    [],
  );
});

test('every text of the Lab is in i18n, if its README says so', () => {
  const texts = sources(/^web\/lab\/src\/(?!i18n\/).*\bmessages.*\.ts$/);
  if (texts.length > 0) expect(readText('web/lab/README.md')).not.toMatch(/every text/);
});

test('no control of the Lab is disabled, if its README says so', () => {
  if (/No control is disabled/.test(readText('web/lab/README.md')))
    expect(anyMatches(sources(/^web\/lab\/.*\.tsx$/), /\sdisabled(=|\s*$)/m)).toEqual([]);
});

test('the layer in view is never dropped, and nothing says that it is dropped last', () => {
  expect(anyMatches(sources(/^web\/lab\//), /dropped last/)).toEqual([]);
});

test('what is the same on the page and in exports is drawn once, if that is said', () => {
  if (anyMatches(everything, /the same on the page and in exports/).length > 0)
    expect(trackedFiles).not.toContain('web/lab/src/figures/svg.ts');
});

test('tests hold the formulas of work equal to the counters', () => {
  const formulas = [...readText('web/src/work-formula.ts').matchAll(/export function (\w+)/g)];
  expect(formulas.length).toBeGreaterThan(0);
  for (const [, name] of formulas)
    expect(anyMatches(sources(/^tests\/.*\.tsx?$/), new RegExp(`\\b${name}\\(`)), name).not.toEqual(
      [],
    );
});

test('docs/architecture.md names the file of every kind of session', () => {
  const rows = [
    ...readText('docs/architecture.md')
      .split('## Which session is which')[1]!
      .split('\n## ')[0]!
      .matchAll(/^\| (`.*?)\| `(\S+)` /gm),
  ];
  expect(rows.length).toBeGreaterThan(5);
  for (const [, names, path] of rows) {
    for (const [, name] of names!.matchAll(/`(?:kvlens::)?([A-Z]\w*)/g))
      expect(readText(path!), path).toMatch(new RegExp(`\\b${name}\\b`));
  }
});

test('npm run bench is the comparison in a browser, and tests/README.md says so', () => {
  const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };
  expect(scripts['bench']).toContain('tests/bench/browser/');
  expect(readText('tests/README.md')).not.toMatch(/Google Benchmark\s*\|\s*`npm run bench`/);
});

test('README.md promises no set-up that installs into a cache alone', () => {
  expect(readText('README.md')).not.toMatch(/a cache of its own/);
});

test('until a version is published, README.md says how to install without npm having it', () => {
  if (/^## \[\d/m.test(readText('CHANGELOG.md'))) return;
  const readme = readText('README.md');
  expect(readme).toContain('npm pack');
  expect(readme).not.toMatch(/npm install kvlens\b/);
});
