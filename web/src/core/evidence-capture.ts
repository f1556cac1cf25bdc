/** Asks the module to copy evidence while a call runs, and arranges what it copied. */
import type { Recorder } from '../kvlens-simd.js';
import {
  STAGES,
  type CaptureOptions,
  type ComputeType,
  type Evidence,
  type FloatArray,
  type Stage,
  type StageTensor,
} from '../types.js';
import * as check from './arguments.js';
import { allocating, type Instance } from './instance.js';
import type { CoreModel } from './core-model.js';

/** What a row of each stage looks like. */
function rowShape(stage: Stage, { config }: CoreModel): number[] {
  switch (stage) {
    case 'q_projection':
    case 'q_norm':
    case 'q_rope':
    case 'head_outputs':
      return [config.nHeads, config.headDim];
    case 'k_projection':
    case 'v_projection':
    case 'k_norm':
    case 'k_rope':
      return [config.nKvHeads, config.headDim];
    case 'ffn_gate':
    case 'ffn_up':
    case 'ffn_activation':
      return [config.dFf];
    case 'logits':
      return [config.vocabSize];
    default:
      return [config.dModel];
  }
}

interface Row {
  readonly position: number;
  /** A view of the module's memory. */
  readonly values: Float32Array | Float64Array;
}

export class EvidenceCapture<C extends ComputeType> {
  readonly recorder: Recorder;
  readonly #instance: Instance;
  readonly #model: CoreModel;
  readonly #compute: C;
  readonly #layers: readonly number[];
  readonly #firstPosition: number;
  readonly #nRows: number;
  /** Allocated before the call runs, so that a call that has succeeded cannot fail for it. */
  readonly #attention: FloatArray<C>;
  #ended = false;

  /**
   * Starts a capture of a call that will run `nRows` rows from `position` on. Returns undefined if
   * no evidence is requested. Errors: invalid_argument, out_of_memory.
   */
  static start<C extends ComputeType>(
    instance: Instance,
    model: CoreModel,
    compute: C,
    options: CaptureOptions | undefined,
    position: number,
    nRows: number,
  ): EvidenceCapture<C> | undefined {
    const wanted = check.capture(options, model.config.nLayers);
    if (wanted === undefined || nRows === 0) return undefined;
    const skipped = wanted.lastRow ? nRows - 1 : 0;
    return new EvidenceCapture(
      instance,
      model,
      compute,
      wanted,
      position + skipped,
      nRows - skipped,
    );
  }

  private constructor(
    instance: Instance,
    model: CoreModel,
    compute: C,
    { all, layers }: { all: boolean; layers: readonly number[] },
    firstPosition: number,
    nRows: number,
  ) {
    this.#instance = instance;
    this.#model = model;
    this.#compute = compute;
    this.#layers = layers;
    this.#firstPosition = firstPosition;
    this.#nRows = nRows;
    this.#attention = this.#floats(
      layers.length * model.config.nHeads * nRows * (firstPosition + nRows),
    );
    const ids = Uint32Array.from(layers);
    this.recorder = instance.call((module) =>
      module.createRecorder(model.raw, compute === 'f64', all, ids, firstPosition),
    );
  }

  /** Frees the module's copy. Calling it again does nothing. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (!this.#instance.gone) this.#instance.call(() => this.recorder.delete());
  }

  /** Copies out what has been recorded. Errors: out_of_memory. */
  take(): Evidence<C> {
    const groups = this.#instance.call(() => this.#groups());
    const nHeads = this.#model.config.nHeads;
    const width = this.#firstPosition + this.#nRows;
    const attention = this.#attention;
    const stages: StageTensor<C>[] = [];
    for (const { stage, layer, rows } of groups.values()) {
      if (stage === 'attention_weights') {
        const slot = this.#layers.indexOf(layer);
        for (const { position, values } of rows) {
          const length = values.length / nHeads;
          for (let head = 0; head < nHeads; ++head) {
            const row = (slot * nHeads + head) * this.#nRows + position - this.#firstPosition;
            attention.set(values.subarray(head * length, (head + 1) * length), row * width);
          }
        }
        continue;
      }
      const shape = rowShape(stage, this.#model);
      const size = shape.reduce((product, length) => product * length, 1);
      const data = this.#floats(rows.length * size);
      rows.forEach(({ values }, i) => data.set(values, i * size));
      stages.push({
        stage,
        layer,
        firstPosition: rows[0]!.position,
        data,
        shape: [rows.length, ...shape],
      });
    }
    return {
      layers: this.#layers,
      firstPosition: this.#firstPosition,
      nRows: this.#nRows,
      attention: { data: attention, shape: [this.#layers.length, nHeads, this.#nRows, width] },
      stages,
    };
  }

  #floats(size: number): FloatArray<C> {
    return allocating(8 * size, () =>
      this.#compute === 'f64' ? new Float64Array(size) : new Float32Array(size),
    ) as FloatArray<C>;
  }

  #groups(): Map<string, { stage: Stage; layer: number; rows: Row[] }> {
    const { recorder } = this;
    const groups = new Map<string, { stage: Stage; layer: number; rows: Row[] }>();
    for (let i = 0, n = recorder.nRecords(); i < n; ++i) {
      const stage = STAGES[recorder.stage(i)]!;
      const layer = recorder.layer(i);
      const key = `${stage} ${layer}`;
      let group = groups.get(key);
      if (group === undefined) groups.set(key, (group = { stage, layer, rows: [] }));
      group.rows.push({ position: recorder.position(i), values: recorder.valuesView(i) });
    }
    return groups;
  }
}
