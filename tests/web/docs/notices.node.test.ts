// THIRD_PARTY_NOTICES.md names everything of others that is shipped.
import { expect, test } from 'vitest';
import { readText } from '../../support/markdown.js';
import { notices } from '../../../tools/build-notices.mjs';

const committed = readText('THIRD_PARTY_NOTICES.md');

test('is what `npm run notices` writes', () => {
  expect(committed).toBe(notices());
});

test('names every dependency of the package', () => {
  const { dependencies } = JSON.parse(readText('package.json')) as {
    dependencies: Record<string, string>;
  };
  for (const [name, version] of Object.entries(dependencies))
    expect(committed).toContain(`- ${name} ${version} (`);
});

test.each(['fdlibm', 'Sun Microsystems', 'stories260K', 'Emscripten', 'musl'])(
  'names %s',
  (name) => {
    expect(committed).toContain(name);
  },
);
