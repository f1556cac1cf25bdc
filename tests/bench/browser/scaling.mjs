// Cost of a decoded token by position, with the cache and by complete-prefix replay; and that of
// capturing attention. kvlens alone.
import { Entry } from './entries.mjs';
import { printTable } from './report.mjs';
import { shape } from './shape.mjs';
import { fitExponent, fitLine, median, summary } from './statistics.mjs';
import { promptTokens } from './weights.mjs';

const evidencePosition = 512;
const newTokens = 16;

const milliseconds = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(2));

async function measureCost(entry, positions, repetitions) {
  const prompt = promptTokens(positions.at(-1));
  const cost = positions.map((position) => ({ position, cached: [], replayed: [] }));
  const cached = ({ position }) => entry.call('cachedToken', { prompt, position, newTokens });
  for (const item of cost) {
    console.log(`position ${item.position}`);
    await cached(item); // also fills the cache
    // The longest replay alone takes longer than all the rest.
    const replays = item.position > 2048 ? 1 : repetitions;
    for (let i = 0; i < replays; ++i) {
      item.replayed.push(await entry.call('replayedToken', { prompt, position: item.position }));
    }
  }
  for (let i = 0; i < 3 * repetitions; ++i) {
    for (const item of cost) item.cached.push(await cached(item));
  }
  return cost;
}

function printCost(cost) {
  console.log('\nMilliseconds a decoded token');
  printTable(
    ['position', 'cached', 'min..max', 'replayed', 'min..max', 'replayed / cached'],
    cost.map(({ position, cached, replayed }) => {
      const [c, r] = [summary(cached), summary(replayed)];
      const cells = ({ min, median, max }) => [
        milliseconds(median),
        `${milliseconds(min)}..${milliseconds(max)}`,
      ];
      return [position, ...cells(c), ...cells(r), (r.median / c.median).toFixed(0)];
    }),
  );
  const points = (kind) => cost.map((item) => [item.position, median(item[kind])]);
  const local = (list) =>
    list
      .slice(1)
      .map((point, i) => `${fitExponent([list[i], point]).toFixed(2)} (${list[i][0]}..${point[0]})`)
      .join(', ');

  // cached(n) = a + b n: weights are read once a token whatever the position, attention grows with
  // it.
  const cached = points('cached');
  const line = fitLine(cached);
  const attention = cached
    .slice(1)
    .map(([position, cost]) => [position - cached[0][0], cost - cached[0][1]]);
  console.log(
    `cached: ${milliseconds(line.intercept)} ms + ${(line.slope * 1000).toFixed(3)} ms a 1000 positions`,
  );
  if (attention.every(([, cost]) => cost > 0)) {
    const exponent = fitExponent(attention);
    console.log(
      `  what is added to the cost at ${cached[0][0]} grows as position^${exponent.toFixed(2)} ` +
        `(asked: linear): ${Math.abs(exponent - 1) <= 0.2 ? 'reached' : 'MISSED'}`,
    );
  }
  // replayed(n) / n = a + b n: a replay of n rows is n times a row's linears and n^2 / 2 scores.
  const replayed = points('replayed');
  const perRow = fitLine(replayed.map(([position, cost]) => [position, cost / position]));
  console.log(
    `replayed: position^${fitExponent(replayed).toFixed(2)}; between neighbours ${local(replayed)}`,
  );
  const last = cost.at(-1).position;
  const share = (perRow.slope * last) / (perRow.intercept + perRow.slope * last);
  console.log(
    `  as n (a + b n): a = ${perRow.intercept.toFixed(4)} ms, b = ${(perRow.slope * 1e6).toFixed(3)} ns; ` +
      `${(100 * share).toFixed(0)} % of it quadratic at ${last} (asked: quadratic): ` +
      (perRow.slope > 0 ? 'reached' : 'MISSED'),
  );
}

function printEvidence({ none, attention }) {
  const [without, withCapture] = [median(none), median(attention)];
  const extra = (100 * (withCapture - without)) / without;
  console.log(
    `\nattention capture at ${evidencePosition} positions: ${milliseconds(without)} ms without, ` +
      `${milliseconds(withCapture)} ms with, ${extra.toFixed(1)} % more (asked: at most 10 %): ` +
      (extra <= 10 ? 'reached' : 'MISSED'),
  );
}

/** Prints as it goes; returns rows as those of rows.mjs, with `cache: 'cached' | 'replayed'`. */
export async function runScaling(session, { weights, threads, repetitions, quick, level }) {
  const positions = quick ? [128, 512, 2048] : [128, 512, 2048, 8192];
  const rows = [];
  for (const nThreads of threads) {
    const entry = new Entry('kvlens', weights, nThreads);
    console.log(`\n${entry.title}`);
    await entry.load(session, { capacity: evidencePosition + newTokens, shape, level });
    await entry.call('run', { prompt: promptTokens(32), newTokens: 8, keep: false });
    const evidence = await entry.call('evidenceCost', {
      prompt: promptTokens(evidencePosition),
      position: evidencePosition,
      newTokens,
      repetitions: 2 * repetitions,
    });
    const cost = entry.failure ? [] : await measureCost(entry, positions, repetitions);
    await entry.close();
    if (entry.failure) throw new Error(`${entry.title}: ${entry.failure}`);
    printCost(cost);
    printEvidence(evidence);
    const base = { runtime: 'kvlens', weights, threads: nThreads, measure: 'decode' };
    const perSecond = (list) => summary(list.map((value) => 1000 / value));
    for (const { position, cached, replayed } of cost) {
      for (const [cache, values] of Object.entries({ cached, replayed })) {
        rows.push({ ...base, position, tokensPerSecond: perSecond(values), cache });
      }
    }
    for (const [capture, values] of Object.entries(evidence)) {
      rows.push({
        ...base,
        position: evidencePosition,
        tokensPerSecond: perSecond(values),
        capture,
      });
    }
  }
  return rows;
}
