// Block formats: dequantised exactly, and whole models of them near a float64 forward.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Core } from 'kvlens/core';
import { fixtureBytes, fixtureJson } from '../../support/fixtures.js';
import {
  checkBlocks,
  checkTypes,
  storedTypes,
  typesTable,
  type BlockTable,
  type TypesGolden,
  type TypesResult,
} from '../../support/golden-cases.js';
import { sharedCore } from '../../support/kvlens.js';

let core: Core;
beforeAll(async () => {
  core = await sharedCore();
});

test('every stored type reads back as the values that its blocks stand for', async () => {
  const table = await fixtureJson<BlockTable>('quant/quant_blocks.json');
  const types = storedTypes(table);
  expect(types).toHaveLength(12);
  for (const [type, dtype] of types) checkBlocks(core, table, type, dtype);
});

const results: [string, TypesResult][] = [];
afterAll(() => console.log(typesTable('quant256', results)));

describe('quant256', () => {
  test.each(['Q4_0', 'Q4_1', 'Q5_0', 'Q5_1', 'Q2_K', 'Q3_K_M', 'Q4_K_M', 'Q5_K_M', 'Q6_K'])(
    '%s: argmax at every position',
    async (type) => {
      const golden = await fixtureJson<TypesGolden>('quant/quant256.json');
      const result = await checkTypes(
        core,
        await fixtureBytes(`quant/quant256-${type}.gguf`),
        golden,
        type,
      );
      expect(result.error.f64).toBeLessThan(1e-5);
      results.push([type, result]);
    },
  );
});
