// The colours and fonts of the figures as plain values, for canvases and exports, where custom
// properties do not reach.

export interface FigureTheme {
  readonly surface: string;
  readonly masked: string;
  readonly line: string;
  readonly lineStrong: string;
  readonly text: string;
  readonly textMuted: string;
  readonly accent: string;
  readonly grid: string;
  readonly cached: string;
  readonly replay: string;
  readonly fontSans: string;
  readonly fontMono: string;
}

const properties: Readonly<Record<keyof FigureTheme, string>> = {
  surface: '--surface-raised',
  masked: '--surface-sunken',
  line: '--line',
  lineStrong: '--line-strong',
  text: '--text',
  textMuted: '--text-muted',
  accent: '--accent',
  grid: '--grid',
  cached: '--series-cached',
  replay: '--series-replay',
  fontSans: '--font-sans',
  fontMono: '--font-mono',
};

/**
 * What figures look like on a page that sets no custom properties, and in exports made outside of
 * one.
 */
export const defaultTheme: FigureTheme = {
  surface: '#ffffff',
  masked: '#efede8',
  line: '#dedbd3',
  lineStrong: '#85827a',
  text: '#1a1d22',
  textMuted: '#565b64',
  accent: '#1f5fa6',
  grid: '#e6e3dc',
  cached: '#1f5fa6',
  replay: '#a35a00',
  fontSans: 'system-ui, sans-serif',
  fontMono: 'ui-monospace, monospace',
};

/** The theme that holds at `element` now. */
export function readTheme(element: Element): FigureTheme {
  const computed = getComputedStyle(element);
  const theme: Record<string, string> = {};
  for (const [name, property] of Object.entries(properties)) {
    theme[name] =
      computed.getPropertyValue(property).trim() || defaultTheme[name as keyof FigureTheme];
  }
  return theme as Record<keyof FigureTheme, string>;
}
