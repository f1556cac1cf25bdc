/**
 * SentencePiece BPE (Kudo and Richardson 2018) as Llama 2 uses it: of all neighbours whose union is
 * a token, the union with the highest score is made first, the leftmost of equals; characters that
 * are no token become their bytes.
 */
import { KvLensError } from '../errors.js';
import { invalidTokenizer } from './tokenizer-errors.js';
import { isNamed, type SentencePieceData } from './tokenizer-data.js';

/** A possible merge of the symbol at `left` with its right neighbour. */
interface Merge {
  readonly left: number;
  readonly score: number;
  /** Length of the union: tells whether either side has changed since. */
  readonly length: number;
}

/** Encodes text, nothing put around it but the space prefix. Errors: invalid_tokenizer. */
export function sentencePieceEncoder(data: SentencePieceData): (text: string) => number[] {
  const idOf = new Map<string, number>();
  data.tokens.forEach((token, id) => idOf.set(token, id));
  const cutPattern = specialPattern(data);
  const scoreless = data.scores.findIndex(Number.isNaN);
  if (scoreless >= 0) throw invalidTokenizer(`score of token ${scoreless}`, NaN, 'a number');
  const utf8 = new TextEncoder();
  const byteIds = Array.from(
    { length: 256 },
    (_, byte) =>
      idOf.get(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`) ?? data.unknownId,
  );

  function encodeText(text: string, ids: number[]): void {
    // A lone surrogate has no UTF-8 form; it is written as U+FFFD, as everywhere in the platform.
    const symbols = Array.from(text.replaceAll(' ', '\u2581'), (char) =>
      /^[\ud800-\udfff]$/.test(char) ? '\ufffd' : char,
    );
    for (const symbol of merge(symbols, idOf, data.scores)) {
      const id = idOf.get(symbol);
      if (id !== undefined) {
        ids.push(id);
        continue;
      }
      for (const byte of utf8.encode(symbol)) {
        const byteId = byteIds[byte];
        if (byteId === undefined) {
          const context = { field: 'text', value: symbol, allowed: 'characters of the vocabulary' };
          const message = `the vocabulary has no token for ${JSON.stringify(symbol)} or its bytes`;
          throw new KvLensError('invalid_tokenizer', context, message);
        }
        ids.push(byteId);
      }
    }
  }

  return (text) => {
    const ids: number[] = [];
    // With a group in the pattern, odd entries are the special tokens themselves.
    const parts = cutPattern === undefined ? [text] : text.split(cutPattern);
    parts.forEach((part, i) => {
      if (i % 2 === 1) ids.push(idOf.get(part) as number);
      else if (part !== '') encodeText(data.addSpacePrefix ? ` ${part}` : part, ids);
    });
    return ids;
  };
}

function specialPattern({ tokens, types }: SentencePieceData): RegExp | undefined {
  const special = tokens.filter((token, id) => token !== '' && isNamed(types[id]));
  if (special.length === 0) return undefined;
  special.sort((a, b) => b.length - a.length); // the longest wins where several begin
  const escaped = special.map((token) => token.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&'));
  return new RegExp(`(${escaped.join('|')})`);
}

/** The symbols that are left when no two neighbours make a token. O(n log n). */
function merge(
  symbols: string[],
  idOf: ReadonlyMap<string, number>,
  scores: readonly number[],
): string[] {
  const count = symbols.length;
  const next = Int32Array.from(symbols, (_, i) => (i + 1 < count ? i + 1 : -1));
  const previous = Int32Array.from(symbols, (_, i) => i - 1);
  const queue = new MergeQueue();
  const offer = (left: number) => {
    const right = left < 0 ? -1 : (next[left] as number);
    if (right < 0) return;
    const union = (symbols[left] as string) + (symbols[right] as string);
    const id = idOf.get(union);
    if (id !== undefined) queue.push({ left, score: scores[id] ?? 0, length: union.length });
  };
  for (let i = 0; i + 1 < count; ++i) offer(i);
  for (let best = queue.pop(); best !== undefined; best = queue.pop()) {
    const { left } = best;
    const right = next[left] as number;
    const leftText = symbols[left] as string;
    if (leftText === '' || right < 0) continue; // merged into another meanwhile
    const rightText = symbols[right] as string;
    if (leftText.length + rightText.length !== best.length) continue;
    symbols[left] = leftText + rightText;
    symbols[right] = '';
    const after = next[right] as number;
    next[left] = after;
    if (after >= 0) previous[after] = left;
    offer(previous[left] as number);
    offer(left);
  }
  return symbols.filter((symbol) => symbol !== '');
}

/** Binary heap: highest score first, leftmost of equals. */
class MergeQueue {
  private readonly heap: Merge[] = [];

  push(merge: Merge): void {
    const { heap } = this;
    let at = heap.length;
    heap.push(merge);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(merge, heap[parent] as Merge)) break;
      heap[at] = heap[parent] as Merge;
      at = parent;
    }
    heap[at] = merge;
  }

  pop(): Merge | undefined {
    const { heap } = this;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const other = heap[child + 1];
      if (other !== undefined && before(other, heap[child] as Merge)) ++child;
      if (!before(heap[child] as Merge, last)) break;
      heap[at] = heap[child] as Merge;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

function before(a: Merge, b: Merge): boolean {
  return a.score > b.score || (a.score === b.score && a.left < b.left);
}
