// Numbers and tokens as they are read.

/** The shortest decimal that gives back the very same single- or double-precision number. */
export function exactDecimal(value: number): string {
  if (Math.fround(value) !== value) return String(value);
  for (let digits = 1; digits < 9; ++digits) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

/** Three significant digits, for places where many numbers stand together. */
export function shortWeight(value: number): string {
  if (value === 0) return '0';
  if (value < 0.0005) return value.toExponential(0).replace('e-', 'e−');
  return value.toFixed(3);
}

/** `1234567` as the locale groups it; fractions to `digits` places. */
export function formatNumber(value: number, locale: string, digits = 0): string {
  return value.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The same at the size of an axis label: 1.2M. */
export function compactNumber(value: number, locale: string): string {
  return value.toLocaleString(locale, { notation: 'compact', maximumSignificantDigits: 3 });
}

const visible: Readonly<Record<string, string>> = { ' ': '·', '\n': '↵', '\t': '⇥', '\r': '␍' };

/** A piece of text with its white space made visible. */
export function visibleToken(piece: string): string {
  return piece === '' ? '∅' : piece.replace(/[ \n\t\r]/g, (space) => visible[space]!);
}
