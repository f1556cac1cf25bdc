// What a run prints.
import { withBaselines } from './baselines.mjs';
import { rate, select } from './rows.mjs';
import { median } from './statistics.mjs';
import { checkTargets } from './targets.mjs';

export function printTable(head, body) {
  const text = [head, ...body].map((cells) => cells.map((cell) => String(cell ?? '')));
  const widths = head.map((_, i) => Math.max(...text.map((cells) => cells[i].length)));
  const isNumber = (cell) => /^[\d<>=.]/.test(cell);
  const line = (cells) =>
    cells
      .map((cell, i) => (isNumber(cell) ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join('  ')
      .trimEnd();
  const [first, ...rest] = text.map(line);
  console.log([first, widths.map((width) => '-'.repeat(width)).join('  '), ...rest].join('\n'));
}

function digits(value) {
  if (value === undefined) return '';
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
}
const range = ({ min, max }) => `${digits(min)}..${digits(max)}`;

/**
 * Best measured or stored rate of a peer for the same measure and threads; of wllama, with the same
 * weights.
 */
function peerRate(rows, runtime, { weights, threads, measure, position }) {
  const found = select(rows, {
    runtime,
    threads,
    measure,
    position,
    ...(runtime === 'wllama' ? { weights } : {}),
  });
  if (found.length === 0) return '';
  const best = found.reduce((a, b) =>
    a.tokensPerSecond.median >= b.tokensPerSecond.median ? a : b,
  );
  return { median: best.tokensPerSecond.median, stored: best.stored };
}

function printRates(measured) {
  const rows = withBaselines(measured);
  const ratio = (row, runtime) => {
    const peer = peerRate(rows, runtime, row);
    return peer
      ? `${digits(row.tokensPerSecond.median / peer.median)}x${peer.stored ? ' *' : ''}`
      : '';
  };
  const order = (row) =>
    ['prefill', 'decode'].indexOf(row.measure) * 1e6 + row.threads * 1e5 + row.position;
  const shown = measured
    .filter(({ measure }) => measure === 'prefill' || measure === 'decode')
    .sort((a, b) => order(a) - order(b));
  const head = [
    'measure',
    'position',
    'threads',
    'runtime',
    'weights',
    'tokens/s',
    'min..max',
    'vs wllama',
    'vs best ort',
    'of probe',
  ];
  printTable(
    head,
    shown.map((row) => {
      const own = row.runtime === 'kvlens';
      const probe = row.measure === 'decode' ? 'bandwidth' : 'int8';
      const limit =
        own && rate(rows, { measure: 'probe', probe, weights: row.weights, threads: row.threads });
      return [
        row.measure,
        row.position,
        row.threads,
        row.runtime,
        row.kvDtype ? `${row.weights}, ${row.kvDtype} cache` : row.weights,
        digits(row.tokensPerSecond.median),
        range(row.tokensPerSecond),
        own ? ratio(row, 'wllama') : '',
        own ? ratio(row, 'onnxruntime-web') : '',
        limit ? `${digits((100 * row.tokensPerSecond.median) / limit)} %` : '',
      ];
    }),
  );
  if (rows.length > measured.length) {
    console.log(
      '* against a stored figure of an earlier run (baselines.mjs): this run has none of that peer',
    );
  }
}

function printLoads(measured) {
  console.log("\nLoad from a Blob, and the largest resident size of the page's process");
  printTable(
    ['runtime', 'weights', 'threads', 'load ms', 'min..max', 'peak MB'],
    measured
      .filter(({ measure }) => measure === 'load')
      .map((row) => [
        row.runtime,
        row.weights,
        row.threads,
        row.milliseconds.median.toFixed(0),
        range(row.milliseconds),
        row.peakMemoryBytes ? (row.peakMemoryBytes / 1e6).toFixed(0) : 'n/a',
      ]),
  );
}

function printProbes(measured) {
  console.log('\nProbe: what WebAssembly can do at most in this run');
  const units = { bandwidth: 'GB/s', int8: 'Gop/s' };
  const rates = select(measured, { measure: 'probe', weights: 'q8_0' });
  printTable(
    ['probe', 'threads', 'median', 'min..max', 'unit'],
    rates.map((row) => {
      const unit = units[row.probe];
      const { min, median, max } = row.perSecond ?? row.milliseconds;
      const scale = unit ? 1e9 : 1;
      const scaled = { min: min / scale, max: max / scale };
      return [row.probe, row.threads, digits(median / scale), range(scaled), unit ?? 'ms'];
    }),
  );
}

function printTargets(measured) {
  console.log('\nTargets');
  const verdict = (reached) =>
    reached === undefined ? 'not measured' : reached ? 'reached' : 'MISSED';
  printTable(
    ['target', 'asked', 'measured', ''],
    checkTargets(measured).map(({ name, target, value, reached, stored }) => [
      name,
      target,
      digits(value) + (stored && value !== undefined ? ' *' : ''),
      verdict(reached),
    ]),
  );
  console.log(
    'growth of the cost by position, and the cost of evidence: npm run bench -- --scaling\n',
  );
}

export function printReport(rows, groups) {
  console.log();
  printRates(rows);
  printLoads(rows);
  printProbes(rows);
  printTargets(rows);
  for (const { entries } of groups) {
    for (const entry of entries) {
      if (entry.failure) console.log(`${entry.title}: failed: ${entry.failure}`);
      if (entry.samples.decodeCore) {
        console.log(
          `${entry.title}: decode inside the worker ${digits(median(entry.samples.decodeCore))} tokens/s`,
        );
      }
      if (entry.note) console.log(`${entry.title}: ${entry.note}`);
    }
  }
}
