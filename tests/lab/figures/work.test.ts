import { describe, expect, test } from 'vitest';
import { loadCore, type StepInfo } from 'kvlens/core';
import {
  areaPath,
  markedPoints,
  nearestPoint,
  plotWork,
} from '../../../web/lab/src/figures/work-scales.js';
import {
  countsOf,
  difference,
  presentSteps,
  workSeries,
  type ReplayRun,
} from '../../../web/lab/src/figures/work-series.js';
import { csv, headTableCsv, mapCsv, workCsv } from '../../../web/lab/src/figures/csv.js';
import { exactDecimal, visibleToken } from '../../../web/lab/src/format.js';
import { figures as en } from '../../../web/lab/src/i18n/en-figures.js';
import { matrixOf } from './matrices.js';

const dimensions = {
  nLayers: 2,
  nHeads: 4,
  nKvHeads: 2,
  headDim: 8,
  dModel: 32,
  dFf: 48,
  vocabSize: 40,
  maxSeqLen: 32,
};

/** A real session: a prefill of 5, three decodes, and a replay of each prefix. */
async function realRun(slidingWindow = 0) {
  const core = await loadCore();
  const model = core.randomModel({ ...dimensions, slidingWindow }, { rng: { state: 5n } });
  const session = core.createSession(model);
  const steps: StepInfo[] = [session.prefill([1, 2, 3, 4, 5])];
  const replays: ReplayRun[] = [];
  const replay = () => replays.push({ ...session.replay(), nTokens: session.kvLen });
  replay();
  for (const token of [6, 7, 8]) {
    steps.push(session.decode(token));
    replay();
  }
  const { config } = model;
  core.dispose();
  return { config, steps, replays };
}

describe('workSeries', () => {
  test('adds up what the calls measured', async () => {
    const { config, steps, replays } = await realRun();
    const points = workSeries(config, steps, replays);
    expect(points.map(({ length, phase }) => [length, phase])).toEqual([
      [5, 'prefill'],
      [6, 'decode'],
      [7, 'decode'],
      [8, 'decode'],
    ]);
    // 8 heads in all: rows of 1..5, then of 6, 7, 8 keys; replays of 25, 36, 49, 64.
    expect(points.map(({ cached }) => cached.scores)).toEqual([15, 21, 28, 36].map((n) => 8 * n));
    expect(points.map(({ replay }) => replay.scores)).toEqual([25, 61, 110, 174].map((n) => 8 * n));
    expect(points.map(({ replay }) => replay.causalScores)).toEqual(
      [15, 36, 64, 100].map((n) => 8 * n),
    );
    expect(points.map(({ cached }) => cached.milliseconds)[0]).toBe(steps[0]!.milliseconds);
    expect(difference(points[3]!, 'scores')).toBe(8 * (174 - 36));
    expect(points.every(({ replayMeasured }) => replayMeasured)).toBe(true);
  });

  test('computes the counts of replays that were not run as they would have been measured', async () => {
    for (const window of [0, 3]) {
      const { config, steps, replays } = await realRun(window);
      const measured = workSeries(config, steps, replays);
      const computed = workSeries(config, steps, []);
      for (const metric of ['scores', 'causalScores', 'multiplyAdds'] as const) {
        expect(computed.map(({ replay }) => replay[metric])).toEqual(
          measured.map(({ replay }) => replay[metric]),
        );
      }
      expect(
        computed.every(
          ({ replayMeasured, replay }) => !replayMeasured && Number.isNaN(replay.milliseconds),
        ),
      ).toBe(true);
    }
  });

  test('computes a time from the rate of the replays that were run', async () => {
    const { config, steps, replays } = await realRun();
    const last = replays[3]!;
    const points = workSeries(config, steps, [{ ...last, milliseconds: 10 }]);
    expect(points.map(({ replayMeasured }) => replayMeasured)).toEqual([false, false, false, true]);
    const products = replays.map(({ work }) => countsOf(work).multiplyAdds);
    // The prefill is the same pass with and without a cache.
    expect(points[0]!.replay.milliseconds).toBe(steps[0]!.milliseconds);
    expect(points[1]!.replay.milliseconds - points[0]!.replay.milliseconds).toBeCloseTo(
      (10 * products[1]!) / products[3]!,
      12,
    );
    expect(points[3]!.replay.milliseconds - points[2]!.replay.milliseconds).toBeCloseTo(10, 12);
  });

  test('credits a prefill with nothing: the cache saves no work and no time there', async () => {
    const { config, steps, replays } = await realRun();
    for (const runs of [[], replays.slice(3), replays]) {
      const [prefill] = workSeries(config, steps, runs);
      for (const metric of ['causalScores', 'multiplyAdds'] as const)
        expect(difference(prefill!, metric)).toBe(0);
      expect(difference(prefill!, 'milliseconds') || 0).toBe(0);
    }
  });

  test('leaves out the calls of a branch that was cut off', () => {
    const step = (kvLenBefore: number, kvLen: number) => ({ kvLenBefore, kvLen }) as StepInfo;
    const steps = [step(0, 4), step(4, 5), step(5, 6), step(5, 6), step(4, 5), step(0, 3)];
    expect(presentSteps(steps.slice(0, 4)).map(({ kvLen }) => kvLen)).toEqual([4, 5, 6]);
    expect(presentSteps(steps.slice(0, 5))).toEqual([steps[0], steps[4]]);
    expect(presentSteps(steps)).toEqual([steps[5]]);
  });
});

describe('plotWork', () => {
  const totals = (n: number) => ({
    scores: n,
    causalScores: n,
    multiplyAdds: n,
    milliseconds: NaN,
  });
  const points = Array.from({ length: 9 }, (_, i) => ({
    length: i + 2,
    phase: 'decode' as const,
    cached: totals(10 * (i + 1)),
    replay: totals(100 * (i + 1)),
    replayMeasured: i === 4,
  }));

  test('puts points in proportion on linear axes', () => {
    const plot = plotWork(points, 'scores', 'linear', 400, 300, 'en');
    const [left, right] = [plot.margin.left, 400 - plot.margin.right];
    const [top, bottom] = [plot.margin.top, 300 - plot.margin.bottom];
    const p = plot.points[8]!;
    expect(p.x).toBeCloseTo(right, 9);
    expect(plot.points[0]!.x).toBeCloseTo(left, 9);
    // 900 fits the nice domain 0..900.
    expect(p.replayY).toBeCloseTo(top, 9);
    expect(p.cachedY).toBeCloseTo(bottom - (bottom - top) * 0.1, 9);
  });

  test('puts equal factors at equal distances on log-log axes', () => {
    const { points: plotted } = plotWork(points, 'scores', 'logLog', 400, 300, 'en');
    const [p2, p4, p8] = [plotted[0]!, plotted[2]!, plotted[6]!];
    expect(p4.x - p2.x).toBeCloseTo(p8.x - p4.x, 9);
    const tenfold = plotted[0]!.cachedY - plotted[0]!.replayY;
    expect(plotted[5]!.cachedY - plotted[5]!.replayY).toBeCloseTo(tenfold, 9);
  });

  test('has a few ticks whose labels do not collide', () => {
    for (const axes of ['linear', 'logLog'] as const) {
      for (const width of [280, 900]) {
        const { xTicks, yTicks } = plotWork(points, 'scores', axes, width, 300, 'en');
        for (const ticks of [xTicks, yTicks]) {
          expect(ticks.length).toBeGreaterThanOrEqual(2);
          const places = ticks.map(({ at }) => at).sort((a, b) => a - b);
          places.slice(1).forEach((at, i) => expect(at - places[i]!).toBeGreaterThan(18));
        }
      }
    }
  });

  test('shows nothing where there is no number', () => {
    const plot = plotWork(points, 'milliseconds', 'linear', 400, 300, 'en');
    expect(plot.points.every(({ replayY }) => Number.isNaN(replayY))).toBe(true);
    expect(areaPath(plot.points)).toBe('');
  });

  test('shades only where the replays cost more, up to the crossing of the lines', () => {
    const between = (cachedY: number, replayY: number, x: number) => ({
      point: points[0]!,
      x,
      cachedY,
      replayY,
    });
    // Smaller y is more work. The cache costs more at 0, the replays at 10 and 20.
    const path = areaPath([between(10, 30, 0), between(20, 0, 10), between(30, 0, 20)]);
    expect(path).toBe(
      'M5.00 15.00L10.00 0.00L10.00 20.00ZM10.00 20.00L10.00 0.00L20.00 0.00L20.00 30.00Z',
    );
    expect(areaPath([between(10, 30, 0), between(10, 30, 10)])).toBe('');
  });

  test('marks the ends, every replay that was run, and of the others what has room', () => {
    const plot = plotWork(points, 'scores', 'linear', 160, 300, 'en');
    const marked = markedPoints(plot.points, 30).map(({ point }) => point.length);
    expect(marked).toEqual([2, 5, 6, 9, 10]);
    expect(nearestPoint(plot.points, plot.points[3]!.x + 1)).toBe(3);
  });
});

describe('CSV', () => {
  test('quotes what needs it and keeps numbers exact', () => {
    expect(csv([['a,b', 'say "hi"', 'line\nbreak', 0.1, Math.fround(0.1), NaN]])).toBe(
      '"a,b","say ""hi""","line\nbreak",0.1,0.1,\r\n',
    );
  });
  test('of a map has one line for each weight', () => {
    expect(mapCsv(matrixOf([[1], undefined, [0.5, 0.25, 0.25]]), ['·a', '"', 'c'])).toBe(
      'query,query_token,key,key_token,weight\r\n0,·a,0,·a,1\r\n2,c,0,·a,0.5\r\n2,c,1,"""",0.25\r\n2,c,2,c,0.25\r\n',
    );
  });
  test('of scores and of work has a line for each head and each prefix', async () => {
    const scores = [{ entropy: 1, previous: 0.5, first: 0.25, induction: NaN }];
    expect(headTableCsv(scores, en).split('\r\n')[1]).toBe('0,1,0.5,0.25,');
    const { config, steps, replays } = await realRun();
    const lines = workCsv(workSeries(config, steps, replays), en)
      .trim()
      .split('\r\n');
    expect(lines.length).toBe(5);
    expect(lines[1]).toMatch(/^5,prefill,measured,120,120,0,120,200,80,/);
  });
});

describe('numbers and tokens as text', () => {
  test('exactDecimal is the shortest that gives the number back', () => {
    expect(exactDecimal(Math.fround(0.1))).toBe('0.1');
    expect(exactDecimal(0.1)).toBe('0.1');
    expect(exactDecimal(1 / 3)).toBe('0.3333333333333333');
    for (let i = 0; i < 1000; ++i) {
      const value = Math.fround(1 / (1 + i * 0.37));
      expect(Math.fround(Number(exactDecimal(value)))).toBe(value);
    }
  });
  test('visibleToken shows white space', () => {
    expect(visibleToken(' a\n')).toBe('·a↵');
    expect(visibleToken('')).toBe('∅');
  });
});
