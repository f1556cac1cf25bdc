// What kvlens has to reach, as ratios within one run.
import { withBaselines } from './baselines.mjs';
import { kvDtypes } from './measure.mjs';
import { rate, select } from './rows.mjs';

/** The best row of onnxruntime-web: it is compared with whichever weights suit it. */
function bestOnnx(rows, properties) {
  return select(rows, { runtime: 'onnxruntime-web', ...properties }).sort(
    (a, b) => b.tokensPerSecond.median - a.tokensPerSecond.median,
  )[0];
}

/**
 * `[{ name, target, value, reached, stored }]`; `value` and `reached` are undefined where rows are
 * missing. `stored`: the peer's figure is an earlier run's.
 */
export function checkTargets(measured) {
  const rows = withBaselines(measured);
  const checks = [];
  const atLeast = (name, target, a, b, stored = false) => {
    const value = a !== undefined && b !== undefined ? a / b : undefined;
    const reached = value === undefined ? undefined : value >= target;
    checks.push({ name, target: `>= ${target}`, value, reached, stored });
  };
  const ours = (weights, threads, measure, position) =>
    rate(rows, { runtime: 'kvlens', weights, threads, measure, position });
  const against = (measure, position, weights, wllamaTarget, onnxTarget) => {
    const own = ours(weights, 1, measure, position);
    const [wllama] = select(rows, { runtime: 'wllama', weights, threads: 1, measure, position });
    atLeast(
      `${measure} ${weights}: times wllama`,
      wllamaTarget,
      own,
      wllama?.tokensPerSecond.median,
      wllama?.stored,
    );
    if (onnxTarget === undefined) return;
    const onnx = bestOnnx(rows, { threads: 1, measure, position });
    atLeast(
      `${measure} ${weights}: times best onnxruntime-web (${onnx?.weights})`,
      onnxTarget,
      own,
      onnx?.tokensPerSecond.median,
      onnx?.stored,
    );
  };

  // wllama's own timings, which it is measured by, leave out its messages: once more with ours left
  // out.
  const againstWllamaInside = (weights, target) => {
    const [own] = select(rows, {
      runtime: 'kvlens',
      weights,
      threads: 1,
      measure: 'decode',
      position: 64,
    });
    const [wllama] = select(rows, {
      runtime: 'wllama',
      weights,
      threads: 1,
      measure: 'decode',
      position: 64,
    });
    atLeast(
      `decode ${weights}, inside both workers: times wllama`,
      target,
      own?.coreTokensPerSecond?.median,
      wllama?.tokensPerSecond.median,
      wllama?.stored,
    );
  };
  against('decode', 64, 'q8_0', 7, 4);
  againstWllamaInside('q8_0', 7);
  atLeast(
    'decode q8_0: share of the bandwidth probe',
    0.75,
    ours('q8_0', 1, 'decode', 64),
    rate(rows, { measure: 'probe', probe: 'bandwidth', weights: 'q8_0', threads: 1 }),
  );
  against('decode', 64, 'q4_0', 12);
  againstWllamaInside('q4_0', 12);
  atLeast(
    'decode q4_0: times our q8_0',
    1,
    ours('q4_0', 1, 'decode', 64),
    ours('q8_0', 1, 'decode', 64),
  );
  against('prefill', 256, 'q8_0', 10, 1.2);
  against('prefill', 256, 'q4_0', 20, 1.5);
  for (const weights of ['q8_0', 'q4_0']) {
    atLeast(
      `prefill ${weights}: 2 threads, times our 1 thread`,
      1.7,
      ours(weights, 2, 'prefill', 256),
      ours(weights, 1, 'prefill', 256),
    );
  }
  for (const weights of ['q8_0', 'q4_0']) {
    for (const kvDtype of [undefined, ...kvDtypes]) {
      const long = {
        runtime: 'kvlens',
        weights,
        threads: 1,
        measure: 'decode',
        position: 2048,
        kvDtype,
      };
      atLeast(
        `decode ${weights}${kvDtype ? `, ${kvDtype} cache` : ''}: at 2048 positions, times at 64`,
        0.7,
        rate(rows, long),
        ours(weights, 1, 'decode', 64),
      );
    }
  }
  const load = select(rows, { runtime: 'kvlens', weights: 'q8_0', threads: 1, measure: 'load' })[0];
  const copy = select(rows, { measure: 'probe', probe: 'copy' })[0];
  const value = load && copy ? load.milliseconds.median / copy.milliseconds.median : undefined;
  checks.push({
    name: 'load q8_0 from a Blob: times copying the same bytes',
    target: '< 1.5',
    value,
    reached: value === undefined ? undefined : value < 1.5,
  });
  return checks;
}
