// Every part of tokenizer.json that kvlens supports, against the ids and texts of Python's
// `tokenizers`: more than seventy tokenizers on some 250 texts each.
import { beforeAll, expect, test } from 'vitest';
import { createTokenizer } from '../../../web/src/text/tokenizer.js';
import { fixtureJson } from '../../support/fixtures.js';

interface Oracle {
  readonly texts: readonly string[];
  readonly kinds: Readonly<
    Record<
      string,
      {
        readonly json: Record<string, unknown>;
        readonly ids: readonly (readonly number[])[];
        readonly decoded: readonly string[];
      }
    >
  >;
}

let oracle: Oracle;
beforeAll(async () => {
  oracle = await fixtureJson<Oracle>('tokenizer-json/oracle.json');
});

test('gives the ids that Python gives', () => {
  expect(Object.keys(oracle.kinds).length).toBeGreaterThan(70);
  const wrong: string[] = [];
  for (const [kind, { json, ids }] of Object.entries(oracle.kinds)) {
    const tokenizer = createTokenizer({ kind: 'tokenizer.json', json, config: {}, stopIds: [] });
    // The post-processor of one kind puts tokens around the text; `encode` does so by its rule.
    oracle.texts.forEach((text, i) => {
      const found = [...tokenizer.encode(text)].join(' ');
      const right = ids[i]!.join(' ');
      if (found !== right) wrong.push(`${kind} ${JSON.stringify(text)}: ${found}, not ${right}`);
    });
  }
  expect(wrong).toEqual([]);
});

test('gives the texts that Python gives', () => {
  const wrong: string[] = [];
  for (const [kind, { json, ids, decoded }] of Object.entries(oracle.kinds)) {
    const tokenizer = createTokenizer({ kind: 'tokenizer.json', json, config: {}, stopIds: [] });
    ids.forEach((list, i) => {
      const found = tokenizer.decode(list);
      if (found !== decoded[i]) {
        wrong.push(`${kind} ${list.join(' ')}: ${JSON.stringify([found, decoded[i]])}`);
      }
    });
  }
  expect(wrong).toEqual([]);
});
