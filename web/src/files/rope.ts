/**
 * RoPE scaling as divisors of the frequencies of the pairs. All arithmetic is in double.
 */

/** Parameters of Llama 3's scaling, by their names in config.json. */
export interface Llama3Scaling {
  readonly factor: number;
  readonly lowFreqFactor: number;
  readonly highFreqFactor: number;
  readonly originalMaxPositionEmbeddings: number;
}

/** Linear scaling: every frequency is divided by `factor`. Empty for a factor of 1. */
export function linearFactors(factor: number, headDim: number): number[] {
  return factor === 1 ? [] : new Array<number>(headDim / 2).fill(factor);
}

/**
 * Llama 3's scaling (Hugging Face, `_compute_llama3_parameters`): pairs that turn often within the
 * original context keep their frequency, those that turn rarely are slowed by `factor`, and between
 * the two the frequency is interpolated.
 */
export function llama3Factors(scaling: Llama3Scaling, theta: number, headDim: number): number[] {
  const { factor, lowFreqFactor, highFreqFactor } = scaling;
  const original = scaling.originalMaxPositionEmbeddings;
  return Array.from({ length: headDim / 2 }, (_, i) => {
    const frequency = 1 / theta ** ((2 * i) / headDim);
    const wavelength = (2 * Math.PI) / frequency;
    if (wavelength < original / highFreqFactor) return 1;
    if (wavelength > original / lowFreqFactor) return factor;
    const smooth = (original / wavelength - lowFreqFactor) / (highFreqFactor - lowFreqFactor);
    return frequency / (((1 - smooth) * frequency) / factor + smooth * frequency);
  });
}
