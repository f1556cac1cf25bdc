// The rows of `--json`, and of everything that is printed: one a measured value.
//   { runtime, weights, threads, measure, position, tokensPerSecond: { min, median, max } }
// `position` is where decodes are centred, and a prefill's number of tokens. A load has
// `milliseconds` instead of tokens (null). The probe's rows say what its figure would allow at
// most: as tokens that read all weights (`probe: 'bandwidth'`), and as prefilled tokens (`probe:
// 'int8'`); `perSecond` is the figure itself, in bytes and operations. `kvDtype`: of a cache that
// stores another type than f32. `coreTokensPerSecond` of kvlens' decode leaves out messages between
// page and worker.
import { kvDtypes, positions, prefillTokens } from './measure.mjs';
import { headMultiplyAdds, rowMultiplyAdds, weightBytes } from './shape.mjs';
import { summary } from './statistics.mjs';

const scaled = ({ min, median, max }, factor) => ({
  min: min * factor,
  median: median * factor,
  max: max * factor,
});

function entryRows({ runtime, weights, threads, failure, samples, peakMemory }) {
  const base = { runtime, weights, threads };
  const row = (measure, position, values) => ({
    ...base,
    measure,
    position,
    tokensPerSecond: summary(values),
    repetitions: values.length,
  });
  const rows = [];
  if (samples.prefill) rows.push(row('prefill', prefillTokens, samples.prefill));
  if (samples.decode) {
    rows.push({
      ...row('decode', positions.short, samples.decode),
      ...(samples.decodeCore ? { coreTokensPerSecond: summary(samples.decodeCore) } : {}),
    });
  }
  if (samples.decodeLong) rows.push(row('decode', positions.long, samples.decodeLong));
  for (const kvDtype of kvDtypes) {
    const values = samples[`decodeLong, ${kvDtype}`];
    if (values) rows.push({ ...row('decode', positions.long, values), kvDtype });
  }
  if (samples.load) {
    rows.push({
      ...base,
      measure: 'load',
      position: 0,
      tokensPerSecond: null,
      milliseconds: summary(samples.load),
      repetitions: samples.load.length,
      peakMemoryBytes: peakMemory,
    });
  }
  if (failure)
    rows.push({ ...base, measure: 'failure', position: 0, tokensPerSecond: null, failure });
  return rows;
}

function probeRows({ threads, samples }) {
  // The head is for one of the tokens alone.
  const prefillOperations = 2 * (rowMultiplyAdds + headMultiplyAdds / prefillTokens);
  const rows = [];
  for (const weights of ['q8_0', 'q4_0']) {
    const row = (probe, position, operations) => {
      const perSecond = summary(samples[probe]);
      return {
        runtime: 'kvlens',
        weights,
        threads,
        measure: 'probe',
        probe,
        position,
        tokensPerSecond: scaled(perSecond, 1 / operations),
        perSecond,
      };
    };
    if (samples.bandwidth) rows.push(row('bandwidth', positions.short, weightBytes(weights)));
    if (samples.int8) rows.push(row('int8', prefillTokens, prefillOperations));
  }
  for (const probe of ['copy', 'copyFromMemory'].filter((name) => samples[name])) {
    rows.push({
      runtime: 'kvlens',
      weights: 'q8_0',
      threads,
      measure: 'probe',
      probe,
      position: 0,
      tokensPerSecond: null,
      milliseconds: summary(samples[probe]),
    });
  }
  return rows;
}

export const rowsOf = (groups) =>
  groups.flatMap(({ entries, probe }) => [...entries.flatMap(entryRows), ...probeRows(probe)]);

/** Rows with these properties. */
export const select = (rows, properties) =>
  rows.filter((row) => Object.entries(properties).every(([name, value]) => row[name] === value));

/** Median tokens a second of the row with these properties, if there is one. */
export const rate = (rows, properties) => select(rows, properties)[0]?.tokensPerSecond?.median;
