/** A checkpoint's weights into the module's memory, piece by piece: each byte is copied once. */
import type { Core, Model } from '../../core-api.js';
import type { LoadProgress } from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import type { Checkpoint } from '../../files/checkpoint.js';
import { streamTensors } from '../../files/stream-tensors.js';
import { yieldToMessages } from './yield-to-messages.js';

/** What wasm32 can address. */
const ADDRESSABLE = 2 ** 32;
/** A pause, in which an abort or another session's call can arrive, comes after this time. */
const PAUSE_MILLISECONDS = 25;
/** And a report of progress, if anyone listens, also after this share of the bytes. */
const REPORT_SHARE = 1 / 32;
/** Kept for the module itself, its stack, and the buffers of calls. */
const RESERVED = 64 * 2 ** 20;

/**
 * Errors: model_too_large, out_of_memory, aborted, and those of the files and parameters; nothing
 * stays then.
 */
export async function loadWeights(
  core: Core,
  checkpoint: Checkpoint,
  signal: AbortSignal,
  onProgress?: (progress: LoadProgress) => unknown,
): Promise<Model> {
  const available = ADDRESSABLE - RESERVED - core.memory().liveBytes;
  if (checkpoint.totalBytes > available) {
    throw new KvLensError(
      'model_too_large',
      { value: checkpoint.totalBytes, limit: available },
      `the model needs ${checkpoint.totalBytes} bytes for its weights, the module can still hold ${available}`,
    );
  }
  const builder = core.modelBuilder(checkpoint.config);
  try {
    const total = checkpoint.totalBytes;
    const share = onProgress === undefined ? total : total * REPORT_SHARE;
    let done = 0;
    let lastReport = { bytes: 0, time: performance.now() };
    let reportHandled: unknown;
    for await (const { tensor, offset, bytes } of streamTensors(checkpoint, { signal })) {
      if (offset === 0) builder.allocate(tensor.name, tensor.dtype);
      builder.write(tensor.name, offset, bytes);
      if (offset + bytes.byteLength === tensor.byteLength) builder.seal(tensor.name);
      done += bytes.byteLength;
      const due =
        done - lastReport.bytes >= share ||
        performance.now() - lastReport.time >= PAUSE_MILLISECONDS;
      if (done < total && !due) continue;
      // The page deals with a report while more is loaded, but never with two.
      await reportHandled;
      reportHandled = onProgress?.({ stage: 'load', bytes: done, total });
      // Blobs and buffers come without a pause, in which an abort could arrive.
      await yieldToMessages();
      if (signal.aborted)
        throw new KvLensError('aborted', {}, 'loading was aborted', signal.reason);
      lastReport = { bytes: done, time: performance.now() };
    }
    return builder.finish();
  } finally {
    builder.dispose();
  }
}
