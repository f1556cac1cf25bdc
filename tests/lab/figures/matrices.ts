// Small fixed matrices and evidence for the tests of the figures.
import type { Evidence, Tensor } from 'kvlens';
import type { AttentionMatrix, MapStyle, Weights } from '../../../web/lab/src/figures/types.js';

export const plain: MapStyle = { palette: 'cividis', scale: 'linear', hideSink: false };

/** A matrix of given rows, each as long as its position and one. */
export function matrixOf(
  rows: readonly (readonly number[] | undefined)[],
  slidingWindow = 0,
): AttentionMatrix {
  const kept: (Weights | undefined)[] = rows.map((row) => row && Float64Array.from(row));
  return {
    id: '0/0',
    epoch: 0,
    length: rows.length,
    slidingWindow,
    has: (query) => kept[query] !== undefined,
    row: (query) => kept[query],
  };
}

/** A deterministic weight for each place; rows of a head add up to 1. */
export function weightRow(layer: number, head: number, query: number): number[] {
  const raw = Array.from(
    { length: query + 1 },
    (_, key) => 1 + ((layer * 7 + head * 5 + query * 3 + key * 11) % 13),
  );
  const sum = raw.reduce((a, b) => a + b);
  return raw.map((value) => Math.fround(value / sum));
}

interface EvidenceShape {
  readonly nHeads: number;
  readonly layers: readonly number[];
  readonly firstPosition: number;
  readonly nRows: number;
}

/** Evidence as a call gives it, of `weightRow`s. */
export function evidenceOf({ nHeads, layers, firstPosition, nRows }: EvidenceShape): Evidence {
  const columns = firstPosition + nRows;
  const data = new Float32Array(layers.length * nHeads * nRows * columns);
  layers.forEach((layer, slot) => {
    for (let head = 0; head < nHeads; ++head) {
      for (let row = 0; row < nRows; ++row) {
        data.set(
          weightRow(layer, head, firstPosition + row),
          ((slot * nHeads + head) * nRows + row) * columns,
        );
      }
    }
  });
  const attention: Tensor = { data, shape: [layers.length, nHeads, nRows, columns] };
  return { layers, firstPosition, nRows, attention, stages: [] };
}

/** What `EngineSession.attentionMaps` gives. */
export function replayOf(nHeads: number, layers: readonly number[], length: number): Tensor {
  return evidenceOf({ nHeads, layers, firstPosition: 0, nRows: length }).attention;
}
