// Your own golden folders: KVLENS_EXTRA_GOLDEN lists them, separated by colons. Each is looked
// through with everything below it for Hugging Face cases (config.json, model.safetensors,
// golden.json, and GGUF twins model-*.gguf), block tables (quant_blocks.json), and NAME.json beside
// NAME-TYPE.gguf.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  checkBlocks,
  checkHfCase,
  checkTypes,
  storedTypes,
  typesTable,
  type BlockTable,
  type HfGolden,
  type TypesGolden,
} from '../../support/golden-cases.js';
import { sharedCore } from '../../support/kvlens.js';

const folders = (process.env.KVLENS_EXTRA_GOLDEN ?? '').split(':').filter(Boolean);
const json = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;
const bytes = (path: string): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(path));

interface Case {
  readonly name: string;
  readonly run: () => Promise<void>;
}

function hfCases(folder: string): Case[] {
  if (
    !['config.json', 'model.safetensors', 'golden.json'].every((name) =>
      existsSync(join(folder, name)),
    )
  )
    return [];
  const golden = (): HfGolden => json(join(folder, 'golden.json'));
  const files = {
    'config.json': bytes(join(folder, 'config.json')),
    'model.safetensors': bytes(join(folder, 'model.safetensors')),
  };
  const twins = readdirSync(folder).filter((name) => name.endsWith('.gguf'));
  return [
    { name: basename(folder), run: async () => checkHfCase(await sharedCore(), files, golden()) },
    ...twins.map((twin) => ({
      name: `${basename(folder)}/${twin}`,
      run: async () => checkHfCase(await sharedCore(), bytes(join(folder, twin)), golden()),
    })),
  ];
}

function jsonCases(path: string): Case[] {
  const content = json<Partial<TypesGolden & BlockTable>>(path);
  if (content.types === undefined) return [];
  if (content.tokens === undefined) {
    const table = content as BlockTable;
    return storedTypes(table).map(([type, dtype]) => ({
      name: `${basename(path)} ${type}`,
      run: async () => checkBlocks(await sharedCore(), table, type, dtype),
    }));
  }
  const golden = content as TypesGolden;
  const stem = basename(path, '.json').replace(/-types$/, '');
  return Object.keys(golden.types).flatMap((type) => {
    const gguf = join(dirname(path), `${stem}-${type}.gguf`);
    if (!existsSync(gguf)) return [];
    return [
      {
        name: basename(gguf),
        run: async () => {
          console.log(
            typesTable(dirname(path), [
              [basename(gguf), await checkTypes(await sharedCore(), bytes(gguf), golden, type)],
            ]),
          );
        },
      },
    ];
  });
}

function cases(folder: string): Case[] {
  const below = readdirSync(folder, { recursive: true, withFileTypes: true });
  const folders = [
    folder,
    ...below
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name)),
  ];
  const tables = below.filter(
    (entry) => entry.isFile() && /^(quant|.*-types).*\.json$/.test(entry.name),
  );
  return [
    ...folders.flatMap(hfCases),
    ...tables.flatMap((entry) => jsonCases(join(entry.parentPath, entry.name))),
  ];
}

test.skipIf(folders.length > 0)('no further golden folders were given', () => {});

for (const folder of folders) {
  const found = cases(folder);
  console.log(`[  GOLDEN  ] ${folder}: ${found.length} cases`);
  describe(folder, () => {
    test('has cases', () => expect(found.length).toBeGreaterThan(0));
    for (const { name, run } of found) test(name, run);
  });
}
