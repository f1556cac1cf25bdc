// Buttons that save a figure as PNG or SVG and a table as CSV.
import type { ComponentChildren } from 'preact';
import { pngBlob, svgBlob } from '../figures/index.js';
import { text } from '../i18n/index.js';
import { Button } from '../ui/controls.jsx';
import { download } from '../ui/download.js';

interface SaveFigureProps {
  readonly name: string;
  readonly svg: () => string;
  readonly children?: ComponentChildren;
}

export function SaveFigure({ name, svg, children }: SaveFigureProps) {
  const t = text.value.attention;
  return (
    <div class="saves" role="group" aria-label={t.save}>
      <Button
        kind="plain"
        aria-label={`${t.save} SVG: ${name}`}
        onClick={() => download(`${name}.svg`, svgBlob(svg()))}
      >
        SVG
      </Button>
      <Button
        kind="plain"
        aria-label={`${t.save} PNG: ${name}`}
        onClick={async () => download(`${name}.png`, await pngBlob(svg(), { scale: 2 }))}
      >
        PNG
      </Button>
      {children}
    </div>
  );
}

export function SaveTable({ name, csv }: { readonly name: string; readonly csv: () => string }) {
  const t = text.value.attention;
  return (
    <Button
      kind="plain"
      aria-label={`${t.save} CSV: ${name}`}
      onClick={() => download(`${name}.csv`, csv(), 'text/csv')}
    >
      CSV
    </Button>
  );
}
