/**
 * Streams the bytes of a checkpoint's tensors in file order. Each source is read once from front to
 * back, with at most one piece in memory.
 */
import type { Checkpoint, CheckpointTensor } from './checkpoint.js';
import type { OnProgress } from './progress.js';
import type { ByteSource } from './source.js';

/** A part of one tensor. */
export interface TensorPiece {
  readonly tensor: CheckpointTensor;
  /** Byte offset of `bytes` from the start of the tensor. */
  readonly offset: number;
  /** Valid until the next piece is requested. */
  readonly bytes: Uint8Array;
}

// Reading across a gap this small is cheaper than another request.
const smallGap = 64 << 10;

/**
 * Yields every byte of every tensor once. The pieces of one tensor come in order, with no other
 * tensor's pieces between them.
 * Errors: those of the sources.
 */
export async function* streamTensors(
  checkpoint: Pick<Checkpoint, 'tensors' | 'totalBytes'>,
  options: { readonly signal?: AbortSignal; readonly onProgress?: OnProgress } = {},
): AsyncGenerator<TensorPiece> {
  const { signal, onProgress } = options;
  let done = 0;
  for (const run of runs(checkpoint.tensors)) {
    const begin = run.tensors[0]?.byteOffset ?? 0;
    let position = begin;
    let index = 0;
    for await (const piece of run.source.stream(begin, run.end - begin, signal)) {
      const pieceEnd = position + piece.byteLength;
      for (; index < run.tensors.length; ++index) {
        const tensor = run.tensors[index] as CheckpointTensor;
        const end = tensor.byteOffset + tensor.byteLength;
        const from = Math.max(position, tensor.byteOffset);
        const to = Math.min(pieceEnd, end);
        if (from < to) {
          const bytes = piece.subarray(from - position, to - position);
          yield { tensor, offset: from - tensor.byteOffset, bytes };
          done += bytes.byteLength;
        }
        if (end > pieceEnd) break;
      }
      position = pieceEnd;
      onProgress?.({ stage: 'load', bytes: done, total: checkpoint.totalBytes });
    }
  }
}

interface Run {
  readonly source: ByteSource;
  readonly tensors: CheckpointTensor[];
  end: number;
}

/** Groups the tensors that lie close together in one source, in file order. */
function runs(tensors: readonly CheckpointTensor[]): Run[] {
  const result: Run[] = [];
  for (const source of new Set(tensors.map((tensor) => tensor.source))) {
    const list = tensors.filter((tensor) => tensor.source === source);
    let run: Run | undefined;
    for (const tensor of list.sort((a, b) => a.byteOffset - b.byteOffset)) {
      if (run === undefined || tensor.byteOffset - run.end > smallGap) {
        run = { source, tensors: [], end: tensor.byteOffset };
        result.push(run);
      }
      run.tensors.push(tensor);
      run.end = tensor.byteOffset + tensor.byteLength;
    }
  }
  return result;
}
