/**
 * Regular expressions of tokenizer files, which are written for Oniguruma in its Ruby syntax, as
 * JavaScript regular expressions that match the same texts.
 *
 * The differences: `\s`, `\d`, `\w` and `\b` are Unicode's; `^` and `$` match at every line; `.`
 * excludes only the line feed; possessive quantifiers and atomic groups exist; `(?i:...)` folds
 * case in a part of the pattern, which not every browser can. What has no counterpart is refused by
 * name.
 */
import { unsupportedTokenizer } from './tokenizer-errors.js';

// Contents of character classes. In Oniguruma the numbers of Latin-1, such as U+00B2, are word
// characters outside a class alone.
const wordInClass = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}';
const wordClass = `${wordInClass}\\u{b2}\\u{b3}\\u{b9}\\u{bc}-\\u{be}`;

/** Compiles a pattern. Errors: unsupported_tokenizer, naming the pattern and the construct. */
export function compilePattern(source: string): RegExp {
  const { pattern, flags } = new Translator(source).translate();
  try {
    return new RegExp(pattern, flags);
  } catch (error) {
    throw unsupportedTokenizer('pattern', source, 'regular expressions', error);
  }
}

/** A pattern that matches `text` itself. */
export function literalPattern(text: string): RegExp {
  return new RegExp(Array.from(text, (char) => literal(char, false)).join(''), 'gu');
}

class Translator {
  private at = 0;
  private atomicGroups = 0;
  private usesSets = false;
  private foldsCase = false;

  constructor(private readonly source: string) {}

  translate(): { pattern: string; flags: string } {
    const pattern = this.alternatives();
    if (this.at < this.source.length) throw this.refuse('an unmatched ")"');
    return { pattern, flags: this.usesSets ? 'gv' : 'gu' };
  }

  private refuse(what: string): Error {
    const supported = `regular expressions without ${what}`;
    return unsupportedTokenizer('pattern', this.source, supported);
  }

  private take(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  private char(): string {
    const point = this.source.codePointAt(this.at);
    if (point === undefined) throw this.refuse('an unfinished construct');
    const char = String.fromCodePoint(point);
    this.at += char.length;
    return char;
  }

  private alternatives(): string {
    let out = '';
    const folds = this.foldsCase;
    while (this.at < this.source.length && this.source[this.at] !== ')') {
      if (this.take('|')) out += '|';
      else out += this.quantified();
    }
    this.foldsCase = folds; // inline flags end with their group
    return out;
  }

  /** One atom with its quantifiers. */
  private quantified(): string {
    let atom = this.atom();
    for (;;) {
      const quantifier = this.quantifier();
      if (quantifier === undefined) return atom;
      if (atom === '') throw this.refuse('a quantifier after nothing');
      const isInterval = quantifier.startsWith('{');
      if (this.take('?')) {
        if (/^\{\d+\}$/.test(quantifier)) throw this.refuse(`"${quantifier}?"`);
        atom = `${atom}${quantifier}?`;
      } else if (!isInterval && this.take('+')) {
        atom = this.atomic(`${atom}${quantifier}`);
      } else {
        atom = `${atom}${quantifier}`;
      }
      // A second quantifier repeats the first: "a{1,3}+" is "(?:a{1,3})+".
      if (this.startsQuantifier()) atom = `(?:${atom})`;
    }
  }

  private startsQuantifier(): boolean {
    return /^(?:[*+?]|\{\d*,?\d*\})/.test(this.source.slice(this.at, this.at + 24));
  }

  private quantifier(): string | undefined {
    for (const simple of ['*', '+', '?']) if (this.take(simple)) return simple;
    const interval = /^\{(\d*)(,?)(\d*)\}/.exec(this.source.slice(this.at, this.at + 24));
    if (interval === null) return undefined;
    const [whole, least = '', comma = '', most = ''] = interval;
    if (least === '' && most === '') return undefined; // "{}" and "{,}" are literal
    this.at += whole.length;
    return `{${least || '0'}${comma}${most}}`;
  }

  /** A group that never gives back what it has matched. */
  private atomic(inner: string): string {
    const name = `a${++this.atomicGroups}`;
    return `(?:(?=(?<${name}>${inner}))\\k<${name}>)`;
  }

  private atom(): string {
    const char = this.char();
    switch (char) {
      case '.':
        return '[^\\n]';
      case '^':
        return '(?<![^\\n])';
      case '$':
        return '(?![^\\n])';
      case '[':
        return this.characterClass();
      case '(':
        return this.group();
      case '\\':
        return this.escape();
      default:
        return this.literalChar(char);
    }
  }

  private literalChar(char: string): string {
    if (!this.foldsCase) return literal(char, false);
    const forms = caseForms(char);
    if (forms.length === 1) return literal(char, false);
    return `[${forms.map((form) => literal(form, true)).join('')}]`;
  }

  private group(): string {
    const close = (inner: string): string => {
      if (!this.take(')')) throw this.refuse('an unmatched "("');
      return inner;
    };
    if (!this.take('?')) return close(`(?:${this.alternatives()})`); // captures are not used
    if (this.take('#')) {
      while (this.char() !== ')');
      return '';
    }
    if (this.take('>')) return close(this.atomic(this.alternatives()));
    for (const kind of [':', '=', '!', '<=', '<!']) {
      if (this.take(kind)) return close(`(?${kind}${this.alternatives()})`);
    }
    const flags = /^(-?i)(:|\))/.exec(this.source.slice(this.at));
    if (flags === null) throw this.refuse(`"(?${this.source.slice(this.at, this.at + 2)}"`);
    this.at += flags[0].length;
    const outside = this.foldsCase;
    this.foldsCase = flags[1] === 'i';
    if (flags[2] === ')') return ''; // holds until the surrounding group ends
    const inner = this.alternatives();
    this.foldsCase = outside;
    return close(`(?:${inner})`);
  }

  /** An escape outside a character class. */
  private escape(): string {
    const char = this.char();
    switch (char) {
      case 'b':
      case 'B': {
        const word = `[${wordClass}]`;
        return char === 'b'
          ? `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`
          : `(?:(?<=${word})(?=${word})|(?<!${word})(?!${word}))`;
      }
      case 'A':
        return '(?<![\\s\\S])';
      case 'z':
        return '(?![\\s\\S])';
      case 'Z':
        return '(?=\\n?(?![\\s\\S]))';
      case 'W':
        return `[^${wordClass}]`;
      case 'w':
        return `[${wordClass}]`;
      default: {
        const shared = this.sharedEscape(char);
        return 'set' in shared ? shared.set : this.literalChar(shared.char);
      }
    }
  }

  /** An escape that means the same within a class and outside. */
  private sharedEscape(char: string): { readonly set: string } | { readonly char: string } {
    switch (char) {
      case 's':
        return { set: '\\p{White_Space}' };
      case 'S':
        return { set: '\\P{White_Space}' };
      case 'd':
        return { set: '\\p{Nd}' };
      case 'D':
        return { set: '\\P{Nd}' };
      case 'h':
        return { set: '\\p{AHex}' };
      case 'p':
      case 'P':
        return { set: this.property(char === 'P') };
      case 'x':
      case 'u': {
        const digits =
          char === 'x' ? /^\{([0-9A-Fa-f]+)\}|^([0-9A-Fa-f]{1,2})/ : /^([0-9A-Fa-f]{4})/;
        const match = digits.exec(this.source.slice(this.at, this.at + 12));
        const point = parseInt(match?.[1] ?? match?.[2] ?? '', 16);
        if (match === null || !(point <= 0x10ffff)) throw this.refuse(`this "\\${char}"`);
        this.at += match[0].length;
        return { char: String.fromCodePoint(point) };
      }
      default: {
        const control = { t: '\t', n: '\n', r: '\r', f: '\f', v: '\v', a: '\x07', e: '\x1b' }[char];
        if (control !== undefined) return { char: control };
        if (/[A-Za-z0-9]/.test(char)) throw this.refuse(`"\\${char}"`);
        return { char };
      }
    }
  }

  private property(negated: boolean): string {
    const match = /^\{(\^?)([A-Za-z_ -]+)\}/.exec(this.source.slice(this.at, this.at + 60));
    if (match === null) throw this.refuse('this kind of "\\p"');
    const [whole, caret, name = ''] = match;
    this.at += whole.length;
    const letter = negated !== (caret === '^') ? 'P' : 'p';
    for (const property of [name, `Script=${name}`, posixClasses[name.toLowerCase()] ?? name]) {
      const escape = `\\${letter}{${property}}`;
      try {
        new RegExp(escape, 'u');
        return escape;
      } catch {
        // Another spelling is tried.
      }
    }
    throw this.refuse(`"\\p{${name}}"`);
  }

  /** The rest of a class whose "[" has been read. */
  private characterClass(): string {
    let out = this.take('^') ? '[^' : '[';
    let isFirst = true;
    for (;;) {
      if (this.take(']') && !isFirst) return `${out}]`;
      if (isFirst && this.source[this.at - 1] === ']') {
        out += literal(']', true); // a "]" that comes first is literal
      } else if (this.source.startsWith('[:', this.at)) {
        out += this.posixBracket();
      } else if (this.take('[')) {
        this.usesSets = true;
        out += this.characterClass();
      } else if (this.take('&&')) {
        this.usesSets = true;
        // The operands of an intersection must be classes in JavaScript.
        const start = out.startsWith('[^') ? '[^' : '[';
        out = `${start}[${out.slice(start.length)}]&&[`;
        const rest = this.characterClass(); // up to the same "]"
        return `${out}${rest.slice(1)}]`;
      } else {
        out += this.classItem();
      }
      isFirst = false;
    }
  }

  /** One character, escape or range of a class. */
  private classItem(): string {
    const first = this.classAtom();
    if ('set' in first) return first.set;
    const isRange =
      this.source[this.at] === '-' && !/^-(?:\]|\[|&&)/.test(this.source.slice(this.at));
    if (!isRange) return this.classChars(first.char);
    this.at += 1;
    const last = this.classAtom();
    if ('set' in last) return this.classChars(first.char) + literal('-', true) + last.set;
    if (this.foldsCase) throw this.refuse('a range that ignores case');
    return `${literal(first.char, true)}-${literal(last.char, true)}`;
  }

  private classChars(char: string): string {
    const forms = this.foldsCase ? caseForms(char) : [char];
    return forms.map((form) => literal(form, true)).join('');
  }

  private classAtom(): { readonly set: string } | { readonly char: string } {
    const char = this.char();
    if (char !== '\\') return { char };
    const escaped = this.char();
    if (escaped === 'b') return { char: '\b' };
    if (escaped === 'w') return { set: wordInClass };
    if (escaped === 'W') {
      this.usesSets = true;
      return { set: `[^${wordInClass}]` };
    }
    return this.sharedEscape(escaped);
  }

  private posixBracket(): string {
    const match = /^\[:(\^?)([a-z]+):\]/.exec(this.source.slice(this.at));
    const name = posixClasses[match?.[2] ?? ''];
    if (match === null || name === undefined) throw this.refuse('this POSIX bracket');
    this.at += match[0].length;
    return `\\${match[1] === '^' ? 'P' : 'p'}{${name}}`;
  }
}

const posixClasses: Readonly<Record<string, string>> = {
  alpha: 'Alphabetic',
  digit: 'Nd',
  space: 'White_Space',
  upper: 'Uppercase',
  lower: 'Lowercase',
  cntrl: 'Cc',
  xdigit: 'AHex',
  letter: 'L',
  number: 'N',
  punctuation: 'P',
  symbol: 'S',
  mark: 'M',
  any: 'Any',
};

/** Every character that differs from `char` only in case. */
function caseForms(char: string): string[] {
  const forms = new Set([char]);
  for (const form of forms) {
    // The characters beyond ASCII that fold to "s" and "k" are not what these change case to.
    const other = form === 's' ? '\u017f' : form === 'k' ? '\u212a' : form;
    for (const each of [form.toLowerCase(), form.toUpperCase(), other]) {
      if (Array.from(each).length === 1) forms.add(each);
    }
  }
  return [...forms];
}

function literal(char: string, inClass: boolean): string {
  const isPlain = inClass ? /^[A-Za-z0-9]$/ : /^[^$()*+./?[\\\]^{|}-]$/u;
  return isPlain.test(char) && char !== '\n' ? char : `\\u{${char.codePointAt(0)?.toString(16)}}`;
}
