// Fills of cells that have no colour: lines where there is no weight, dots where the weight was not
// captured. Both stay apart from any colour of a ramp.
export const HATCH = 'url(#kv-hatch)';
export const DOTS = 'url(#kv-dots)';

/** The definitions, for every SVG that uses the fills. */
export function Patterns() {
  return (
    <defs>
      <pattern id="kv-hatch" width="6" height="6" patternUnits="userSpaceOnUse">
        <rect class="kv-pattern-ground" width="6" height="6" />
        <path class="kv-pattern-line" d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5" />
      </pattern>
      <pattern id="kv-dots" width="5" height="5" patternUnits="userSpaceOnUse">
        <rect class="kv-pattern-empty" width="5" height="5" />
        <circle class="kv-pattern-dot" cx="2.5" cy="2.5" r="1.1" />
      </pattern>
    </defs>
  );
}
