/**
 * Tokens that are found in a text by their names, before it is cut into words: special tokens such
 * as `<|im_end|>` and words that were added to a vocabulary.
 */
import { endWithoutSpace } from './normalizers.js';

/** A token that is found by its name. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Whether it is a control token; see `EncodeOptions.parseSpecial`. */
  readonly special: boolean;
  /** Whether it counts only as a whole word. */
  readonly singleWord: boolean;
  /** Whether it takes the white space before it. */
  readonly lstrip: boolean;
  /** Whether it takes the white space after it. */
  readonly rstrip: boolean;
}

/** A part of a text: a token, or the text between tokens. */
export interface Section {
  readonly text: string;
  /** Undefined for text. */
  readonly id: number | undefined;
  /** Whether the searched text begins here. */
  readonly isStart: boolean;
}

interface Node {
  readonly children: Map<number, Node>;
  token?: AddedToken;
}

// What makes a word in Rust's regular expressions, for `singleWord`.
const startsWithWord = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;
const endsWithWord = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]$/u;

/** Finds the names of tokens in texts. */
export class AddedTokens {
  private readonly root: Node = { children: new Map() };

  /** @param tokens Of tokens with the same name, the first counts. */
  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens) {
      if (token.content === '') continue;
      let node = this.root;
      for (let i = 0; i < token.content.length; ++i) {
        const unit = token.content.charCodeAt(i);
        let child = node.children.get(unit);
        if (child === undefined) node.children.set(unit, (child = { children: new Map() }));
        node = child;
      }
      node.token ??= token;
    }
  }

  /**
   * Cuts a text at its tokens: the leftmost first, the longest of those that begin at one place.
   * `accept` can reject a match, from its first to behind its last index.
   */
  cut(
    text: string,
    accept: (token: AddedToken, start: number, end: number) => boolean = () => true,
  ): Section[] {
    const sections: Section[] = [];
    let done = 0;
    const push = (end: number, id?: number): void => {
      if (end > done || id !== undefined) {
        sections.push({ text: text.slice(done, end), id, isStart: done === 0 });
      }
      done = end;
    };
    for (let at = 0; at < text.length;) {
      const token = this.longestAt(text, at);
      if (token === undefined) {
        ++at;
        continue;
      }
      let start = at;
      let end = at + token.content.length;
      at = end;
      if (!accept(token, start, end)) continue;
      if (token.singleWord) {
        // Two units hold the last character of what comes before.
        const isWordBefore = endsWithWord.test(text.slice(Math.max(0, start - 2), start));
        if (isWordBefore || startsWithWord.test(text.slice(end, end + 2))) continue;
      }
      if (token.lstrip) start = done + endWithoutSpace(text.slice(done, start));
      if (token.rstrip) end += /^\p{White_Space}*/u.exec(text.slice(end))![0].length;
      push(start);
      push(end, token.id);
      at = Math.max(at, end);
    }
    push(text.length);
    return sections;
  }

  private longestAt(text: string, start: number): AddedToken | undefined {
    let node: Node | undefined = this.root.children.get(text.charCodeAt(start));
    let token: AddedToken | undefined;
    for (let at = start + 1; node !== undefined; ++at) {
      token = node.token ?? token;
      node = node.children.get(text.charCodeAt(at));
    }
    return token;
  }
}
