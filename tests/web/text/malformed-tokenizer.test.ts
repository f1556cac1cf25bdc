// Whatever is wrong in a tokenizer.json is a typed error, or a tokenizer that encodes.
import { expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { createTokenizer } from '../../../web/src/text/tokenizer.js';
import { fixtureJson } from '../../support/fixtures.js';

const wrong: readonly unknown[] = [null, undefined, 0, -1, 1.5, true, '', 'x', '(', [], {}, [[]]];

/** The paths of all values in the small parts of a JSON value; of lists, the first entries. */
function* paths(value: unknown, path: readonly string[] = []): Generator<readonly string[]> {
  if (path.length > 0) yield path;
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value).slice(0, path.at(-1) === 'vocab' ? 2 : 12)) {
    if (Array.isArray(value) && Number(key) > 1) return;
    yield* paths((value as Record<string, unknown>)[key], [...path, key]);
  }
}

function replaced(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by;
  const copy: Record<string, unknown> = Array.isArray(value)
    ? ([...(value as unknown[])] as unknown as Record<string, unknown>)
    : { ...(value as Record<string, unknown>) };
  copy[key] = replaced(copy[key], rest, by);
  return copy;
}

function attempt(json: unknown, where: string): void {
  try {
    const data = { json: json as Record<string, unknown>, config: {}, stopIds: [] };
    const tokenizer = createTokenizer({ kind: 'tokenizer.json', ...data });
    tokenizer.decode(tokenizer.encode(' a<|x|>  b\u00e9 12', { addBos: false, addEos: false }));
  } catch (error) {
    if (!isKvLensError(error)) throw new Error(where, { cause: error });
    expect(error.code, where).toMatch(/^(invalid|unsupported)_tokenizer$|^token_out_of_range$/);
  }
}

test('every part of every kind, replaced by something else', async () => {
  const { kinds } = await fixtureJson<{ kinds: Record<string, { json: unknown }> }>(
    'tokenizer-json/oracle.json',
  );
  const seen = new Set<string>();
  let tried = 0;
  for (const { json } of Object.values(kinds)) {
    for (const path of paths(json)) {
      let value: unknown = json;
      for (const key of path) value = (value as Record<string, unknown>)[key];
      // A part that another kind has in the same place is tried once.
      const part = `${path.join('.')} ${JSON.stringify(value)?.slice(0, 200)}`;
      if (seen.has(part)) continue;
      seen.add(part);
      for (const by of wrong) attempt(replaced(json, path, by), `${part} by ${String(by)}`);
      tried += wrong.length;
    }
  }
  expect(tried).toBeGreaterThan(5000);
});

test.each([
  ['single', { post_processor: { type: 'TemplateProcessing' } }, 'single is undefined'],
  ['a pattern', { pre_tokenizer: { type: 'Split', behavior: 'Isolated' } }, 'pattern is undefined'],
  [
    'a known behaviour',
    { pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'Eaten' } },
    'behavior is "Eaten"',
  ],
  [
    'tokens for a merge',
    { model: { type: 'BPE', vocab: { a: 0 }, merges: ['a b'] } },
    'merge 0 is "a b"',
  ],
  [
    'an unknown token',
    { model: { type: 'BPE', vocab: { a: 0 }, merges: [], unk_token: '?' } },
    'unk_token is "?"',
  ],
])('a tokenizer.json without %s is invalid', (_, change, says) => {
  const json = { model: { type: 'BPE', vocab: { a: 0 }, merges: [] }, ...change };
  const make = () => createTokenizer({ kind: 'tokenizer.json', json, config: {}, stopIds: [] });
  expect(make).toThrow(expect.objectContaining({ code: 'invalid_tokenizer' }) as Error);
  expect(make).toThrow(says);
});

test.each([
  ['a{2}?', '{2}?'],
  ['\\Ga', '\\G'],
  ['(?<n>a)\\k<n>', '(?<n'],
  ['[[:punct:]]', 'POSIX'],
  ['(?m:a)', '(?m:'],
  ['\\p{Nonsense}', 'Nonsense'],
])('the pattern %s is refused by its construct', (Regex, says) => {
  const json = {
    model: { type: 'BPE', vocab: { a: 0 }, merges: [] },
    pre_tokenizer: { type: 'Split', pattern: { Regex }, behavior: 'Isolated' },
  };
  const make = () => createTokenizer({ kind: 'tokenizer.json', json, config: {}, stopIds: [] });
  expect(make).toThrow(expect.objectContaining({ code: 'unsupported_tokenizer' }) as Error);
  expect(make).toThrow(says);
});
