/**
 * The post-processors of tokenizer.json: they put special tokens around a text.
 */
import { asObject, isObject, listOf, type Json } from './json-parts.js';
import { invalidTokenizer, unsupportedTokenizer } from './tokenizer-errors.js';

/** Ids that are put around a text. */
export interface Surroundings {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

const nothing: Surroundings = { before: [], after: [] };

/**
 * The tokens that a part of tokenizer.json puts around a single text. `idOf` finds tokens that the
 * part itself gives no id. Errors: invalid_tokenizer, unsupported_tokenizer.
 */
export function surroundings(
  part: unknown,
  idOf: (token: string) => number | undefined,
): Surroundings {
  if (part === undefined || part === null) return nothing;
  const json = asObject(part, 'post_processor');
  switch (json['type']) {
    case 'ByteLevel': // changes offsets alone
      return nothing;
    case 'Sequence':
      return listOf(json, 'processors')
        .map((step) => surroundings(step, idOf))
        .reduce(
          (inner, outer) => ({
            before: [...outer.before, ...inner.before],
            after: [...inner.after, ...outer.after],
          }),
          nothing,
        );
    case 'TemplateProcessing':
      return template(json, idOf);
    case 'RobertaProcessing':
    case 'BertProcessing':
      return { before: [pairId(json, 'cls')], after: [pairId(json, 'sep')] };
    default: {
      const supported =
        'Sequence, ByteLevel, TemplateProcessing, RobertaProcessing and BertProcessing';
      throw unsupportedTokenizer('post_processor', json['type'], supported);
    }
  }
}

function template(json: Json, idOf: (token: string) => number | undefined): Surroundings {
  const map = json['special_tokens'] ?? {};
  const before: number[] = [];
  const after: number[] = [];
  let texts = 0;
  for (const entry of listOf(json, 'single')) {
    const piece = asObject(entry, 'single');
    if (isObject(piece['Sequence'])) {
      ++texts;
      continue;
    }
    const name = asObject(piece['SpecialToken'], 'single')['id'];
    if (typeof name !== 'string') throw invalidTokenizer('single', name, 'names of tokens');
    const ids = isObject(map) && isObject(map[name]) ? map[name]['ids'] : [idOf(name)];
    if (!Array.isArray(ids) || !ids.every(isId)) {
      throw invalidTokenizer(`ids of ${name}`, String(ids), 'a list of ids');
    }
    (texts === 0 ? before : after).push(...ids);
  }
  if (texts !== 1) throw unsupportedTokenizer('single', `${texts} texts`, 'one text');
  return { before, after };
}

/** The id of a field `["<s>", 1]`. */
function pairId(json: Json, field: string): number {
  const id = listOf(json, field)[1];
  if (isId(id)) return id;
  throw invalidTokenizer(field, String(id), 'a token and its id');
}

function isId(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}
