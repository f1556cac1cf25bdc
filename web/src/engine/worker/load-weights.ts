/** Copies a checkpoint's weights into the module's memory, piece by piece and each byte once. */
import type { Core, Model } from '../../core-api.js';
import type { LoadProgress } from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import type { Checkpoint } from '../../files/checkpoint.js';
import { streamTensors } from '../../files/stream-tensors.js';
import { yieldToMessages } from './yield-to-messages.js';

/** Bytes that wasm32 can address. */
const ADDRESSABLE = 2 ** 32;
/** How long loading runs without a pause in which messages can arrive. */
const PAUSE_MILLISECONDS = 25;
/** If the page listens, progress is also reported after this share of the bytes. */
const REPORT_SHARE = 1 / 32;
/** Bytes kept free for the module itself, its stack and the buffers of calls. */
const RESERVED = 64 * 2 ** 20;

/**
 * Errors: model_too_large, out_of_memory, aborted, and those of the files and parameters. Nothing
 * stays in memory then.
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
      // Loading goes on while the page handles one report, but never while it handles two.
      await reportHandled;
      reportHandled = onProgress?.({ stage: 'load', bytes: done, total });
      // Blobs and buffers are read without a pause in which an abort could arrive.
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
