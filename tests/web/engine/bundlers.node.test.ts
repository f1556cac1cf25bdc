// Bundlers follow `new URL('./file', import.meta.url)`. webpack takes any other first argument for
// a folder of which it must bundle every file, and the address is then wrong.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const sources = fileURLToPath(new URL('../../../web/src', import.meta.url));

test('every address relative to a file of the package is written out', () => {
  const addresses: string[] = [];
  for (const path of readdirSync(sources, { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.ts')) continue;
    const text = readFileSync(join(sources, path), 'utf8').replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
    for (const [, first] of text.matchAll(/new URL\(\s*([^,()]+),\s*import\.meta\.url/g)) {
      addresses.push(first!.trim());
    }
  }
  expect(addresses.length).toBeGreaterThan(8);
  for (const address of addresses) expect(address).toMatch(/^'\.\.?\/[\w./-]+'$/);
});
