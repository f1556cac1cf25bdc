export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const summary = (values) => ({
  min: Math.min(...values),
  median: median(values),
  max: Math.max(...values),
});

/** Cosine of the angle between two vectors. */
export function cosine(a, b) {
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / Math.sqrt(aa * bb);
}

/** Least squares through `[x, y]` points: `{ intercept, slope }`. */
export function fitLine(points) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [mx, my] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const slope =
    points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) /
    points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  return { slope, intercept: my - slope * mx };
}

/** `b` of the power law `y = a x^b` that fits best. */
export const fitExponent = (points) =>
  fitLine(points.map(([x, y]) => [Math.log(x), Math.log(y)])).slope;
