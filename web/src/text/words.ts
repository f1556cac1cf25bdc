/**
 * Cutting text into the words within which merging happens, with the behaviours that tokenizer
 * files name.
 */

/** A part of a text on its way to becoming a word. */
export interface Word {
  readonly text: string;
  /** Whether the whole text begins here, with no special token before. */
  readonly isStart: boolean;
}

/** What happens to the matches of a pattern and to the text between them. */
export type Behavior =
  'Isolated' | 'Removed' | 'Contiguous' | 'MergedWithPrevious' | 'MergedWithNext';

export const behaviors: ReadonlySet<string> = new Set<Behavior>([
  'Isolated',
  'Removed',
  'Contiguous',
  'MergedWithPrevious',
  'MergedWithNext',
]);

interface Part {
  start: number;
  end: number;
  readonly isMatch: boolean;
}

/**
 * Cuts every word at the matches of `pattern`, which must have the flag `g`. With `invert` the text
 * between matches takes the role of the matches. Empty parts are dropped.
 */
export function cut(
  words: readonly Word[],
  pattern: RegExp,
  behavior: Behavior,
  invert = false,
): Word[] {
  const result: Word[] = [];
  for (const { text, isStart } of words) {
    for (const { start, end } of join(partsOf(text, pattern, invert), behavior)) {
      if (end > start) {
        result.push({ text: text.slice(start, end), isStart: isStart && start === 0 });
      }
    }
  }
  return result;
}

function partsOf(text: string, pattern: RegExp, invert: boolean): Part[] {
  const parts: Part[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const start = match.index;
    if (end < start) parts.push({ start: end, end: start, isMatch: invert });
    end = start + match[0].length;
    parts.push({ start, end, isMatch: !invert });
  }
  if (end < text.length) parts.push({ start: end, end: text.length, isMatch: invert });
  return parts;
}

function join(parts: Part[], behavior: Behavior): Part[] {
  switch (behavior) {
    case 'Isolated':
      return parts;
    case 'Removed':
      return parts.filter((part) => !part.isMatch);
    case 'Contiguous':
      return fold(parts, (part, previous) => part.isMatch === previous);
    case 'MergedWithPrevious':
      return fold(parts, (part, previous) => part.isMatch && !previous);
    case 'MergedWithNext':
      return fold(parts.reverse(), (part, previous) => part.isMatch && !previous).reverse();
  }
}

/** Joins each part to the one before it where `joins` says so. */
function fold(parts: Part[], joins: (part: Part, previousIsMatch: boolean) => boolean): Part[] {
  const result: Part[] = [];
  let previousIsMatch = false;
  for (const part of parts) {
    const last = result.at(-1);
    if (last !== undefined && joins(part, previousIsMatch)) {
      last.start = Math.min(last.start, part.start);
      last.end = Math.max(last.end, part.end);
    } else {
      result.push(part);
    }
    previousIsMatch = part.isMatch;
  }
  return result;
}
