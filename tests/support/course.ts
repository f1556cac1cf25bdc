/** The course fixtures: a float64 decoder, its calls, and what they gave. */
import type { ConfigInput, Core, Model } from 'kvlens/core';

export interface CourseStep {
  readonly call: 'prefill' | 'decode';
  readonly tokens: number[];
  readonly position: number;
  readonly cache_len: number;
  readonly row_attention_score_values: number;
  readonly logits: number[];
  readonly complete_prefix_last_logits: number[];
  readonly complete_prefix_attention_score_values: number;
  readonly work: {
    readonly token_forwards: number;
    readonly prefill_tokens: number;
    readonly decode_tokens: number;
    readonly cache_appends: number;
    readonly qkv_projection_rows: number;
    readonly attention_score_values: number;
  };
  /** `[layer][head][len]`. */
  readonly attention_last_row: number[][][];
  /** Each `[heads, len, headWidth]`. */
  readonly layers: { readonly keys: number[]; readonly values: number[] }[];
}

export interface CourseGeneration {
  readonly mode:
    | { readonly kind: 'greedy' }
    | { readonly kind: 'temperature_top_k'; readonly temperature: number; readonly top_k: number };
  readonly rng_seed: string;
  readonly max_new_tokens: number;
  readonly eos_token: number | null;
  readonly generated: number[];
  readonly stop: 'eos' | 'token-limit' | 'context-limit';
  readonly final_cache_len: number;
  readonly rng_state_after: string;
  readonly work: {
    readonly prefill_tokens: number;
    readonly decode_tokens: number;
    readonly cache_appends: number;
    readonly qkv_projection_rows: number;
    readonly cached_attention_score_values: number;
    readonly complete_prefix_attention_score_values: number;
  };
  readonly steps: {
    readonly prefix_length: number;
    readonly token_id: number;
    readonly unit_draw: number | null;
    readonly interval_start: number;
    readonly interval_end: number;
  }[];
}

export interface CourseCase {
  readonly name: string;
  readonly config: {
    readonly vocabulary_size: number;
    readonly model_width: number;
    readonly heads: number;
    readonly feed_forward_width: number;
    readonly layers: number;
    readonly max_positions: number;
    readonly rope_base: number;
    readonly rms_epsilon: number;
  };
  readonly seed: number;
  readonly rng_state_after_init: string;
  readonly parameters: {
    readonly name: string;
    readonly shape: number[];
    readonly values: number[];
  }[];
  readonly steps: CourseStep[];
  readonly generations: CourseGeneration[];
}

export function courseConfig({ config }: CourseCase): ConfigInput {
  return {
    nLayers: config.layers,
    nHeads: config.heads,
    nKvHeads: config.heads,
    headDim: config.model_width / config.heads,
    dModel: config.model_width,
    dFf: config.feed_forward_width,
    vocabSize: config.vocabulary_size,
    maxSeqLen: config.max_positions,
    rmsNormEps: config.rms_epsilon,
    rope: { theta: config.rope_base },
  };
}

/** The fixture's name of a parameter. */
function courseName(name: string): string {
  return name
    .replace(/^token_embedding$/, 'token_embedding.weight')
    .replace(/^layers\.(\d+)\./, 'blocks.$1.')
    .replace(/_norm$/, '_norm.gain')
    .replace(/\.q_proj$/, '.attention.query.weight')
    .replace(/\.k_proj$/, '.attention.key.weight')
    .replace(/\.v_proj$/, '.attention.value.weight')
    .replace(/\.o_proj$/, '.attention.output.weight')
    .replace(/\.(gate|up|down)_proj$/, '.ffn.$1.weight');
}

/** The fixture's parameters; its projections are `[in, out]`, ours `[out, in]`. */
export function courseModel(core: Core, course: CourseCase): Model {
  const config = courseConfig(course);
  const parameters = core.parameterSpecs(config).map(({ name, shape }) => {
    const found = course.parameters.find((parameter) => parameter.name === courseName(name));
    if (found === undefined) throw new Error(`the fixture has no ${courseName(name)}`);
    const data = Float64Array.from(found.values);
    if (name.endsWith('_proj')) {
      const [rows, cols] = shape as [number, number];
      for (let row = 0; row < rows; ++row) {
        for (let col = 0; col < cols; ++col)
          data[row * cols + col] = found.values[col * rows + row]!;
      }
    }
    return { name, dtype: 'f64' as const, data };
  });
  return core.createModel(config, parameters);
}
