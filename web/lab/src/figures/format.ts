// Numbers and tokens as they are read.

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

/** `1234567` as the locale groups it; fractions to `digits` places. */
export function formatNumber(value: number, locale: string, digits = 0): string {
  return formatOf(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(
    value,
  );
}

/** Three significant digits. */
export function significantNumber(value: number, locale: string): string {
  return formatOf(locale, { maximumSignificantDigits: 3 }).format(value);
}

/** The same at the size of an axis label: 1.2M. */
export function compactNumber(value: number, locale: string): string {
  return formatOf(locale, { notation: 'compact', maximumSignificantDigits: 3 }).format(value);
}

// A format takes far longer to make than to use.
const formats = new Map<string, Intl.NumberFormat>();

function formatOf(locale: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${locale} ${JSON.stringify(options)}`;
  const known = formats.get(key);
  if (known) return known;
  const made = new Intl.NumberFormat(locale, options);
  formats.set(key, made);
  return made;
}

const visible: Readonly<Record<string, string>> = { ' ': '·', '\n': '↵', '\t': '⇥', '\r': '␍' };

/** A piece of text with its white space made visible. */
export function visibleToken(piece: string): string {
  return piece === '' ? '∅' : piece.replace(/[ \n\t\r]/g, (space) => visible[space]!);
}
