// A token as a chip. Colour, shape and a mark show which kind of call made its row.
import { visibleToken } from '../format.js';

/** `waiting`: in the prompt, not in the cache yet. */
export type ChipKind = 'prefill' | 'decode' | 'extend' | 'waiting' | 'plain';

/** The visible form of a piece: white space is made to show, and nothing is ever empty. */
export function Piece({ text }: { readonly text: string }) {
  return <span class="piece">{visibleToken(text)}</span>;
}

export const chipClass = (kind: ChipKind): string => `chip chip-${kind}`;
