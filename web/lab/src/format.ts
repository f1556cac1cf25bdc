// Numbers and tokens as people read them.

/** Numbers as a language writes them. */
export interface Numbers {
  readonly whole: (value: number) => string;
  /** Always `digits` places after the point. */
  readonly fixed: (value: number, digits: number) => string;
  /** Three significant digits. */
  readonly significant: (value: number) => string;
  /** The size of an axis label: 1.2M. */
  readonly compact: (value: number) => string;
  /** One decimal. What is above 0 never reads as 0. */
  readonly percent: (value: number) => string;
  /** How much is done, in whole percent. Empty while the total is not known. */
  readonly percentDone: (done: number, total: number) => string;
  /** Milliseconds; the shorter the time, the more digits. */
  readonly duration: (milliseconds: number) => string;
}

// A format takes far longer to make than to use.
const known = new Map<string, Numbers>();

export function numbersIn(locale: string): Numbers {
  const made = known.get(locale) ?? makeNumbers(locale);
  known.set(locale, made);
  return made;
}

function makeNumbers(locale: string): Numbers {
  const format = (options: Intl.NumberFormatOptions) => new Intl.NumberFormat(locale, options);
  const whole = format({ maximumFractionDigits: 0 });
  const significant = format({ maximumSignificantDigits: 3 });
  const compact = format({ notation: 'compact', maximumSignificantDigits: 3 });
  const digits = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  const percent = format({ style: 'percent', ...digits });
  const wholePercent = format({ style: 'percent', maximumFractionDigits: 0 });
  const places = new Map<number, Intl.NumberFormat>();
  const fixed = (value: number, n: number): string => {
    const made = places.get(n) ?? format({ minimumFractionDigits: n, maximumFractionDigits: n });
    places.set(n, made);
    return made.format(value);
  };
  return {
    whole: (value) => whole.format(value),
    fixed,
    significant: (value) => significant.format(value),
    compact: (value) => compact.format(value),
    percent: (value) =>
      value > 0 && value < 0.001 ? `< ${percent.format(0.001)}` : percent.format(value),
    percentDone: (done, total) =>
      total === 0 ? '' : wholePercent.format(Math.floor((100 * done) / total) / 100),
    duration: (value) =>
      value >= 100 ? whole.format(value) : value >= 1 ? significant.format(value) : fixed(value, 2),
  };
}

export type ByteUnit = 'B' | 'KB' | 'MB' | 'GB';

/** Bytes in the largest unit of 1,024 that leaves at least one. */
export function inBinaryUnit(bytes: number): { readonly value: number; readonly unit: ByteUnit } {
  const units = ['B', 'KB', 'MB', 'GB'] as const;
  const power = bytes < 1 ? 0 : Math.min(3, Math.floor(Math.log2(bytes) / 10));
  return { value: bytes / 1024 ** power, unit: units[power] ?? 'GB' };
}

/** 0 is exact and stays 0; any other difference is shown by its power of ten. */
export const difference = (value: number): string => (value === 0 ? '0' : value.toExponential(2));

/** The shortest decimal that gives back the very same single- or double-precision number. */
export function exactDecimal(value: number): string {
  if (Math.fround(value) !== value) return String(value);
  // Nine digits always suffice; most weights need eight or nine, so the search goes down.
  let shortest = Number(value.toPrecision(9));
  for (let digits = 8; digits > 0; --digits) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) !== value) break;
    shortest = shorter;
  }
  return String(shortest);
}

const visible: Readonly<Record<string, string>> = { ' ': '·', '\n': '↵', '\t': '⇥', '\r': '␍' };

/** A piece of text with its white space made visible. */
export function visibleToken(piece: string): string {
  return piece === '' ? '∅' : piece.replace(/[ \n\t\r]/g, (space) => visible[space]!);
}
