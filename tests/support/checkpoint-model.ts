/** Models of the synchronous level from checkpoint files, as the engine loads them. */
import type { Core, Model } from 'kvlens/core';
import type { Checkpoint } from '../../web/src/files/checkpoint.js';
import { openCheckpoint, type CheckpointInput } from '../../web/src/files/open-checkpoint.js';
import { streamTensors } from '../../web/src/files/stream-tensors.js';
import { fixtureBytes } from './fixtures.js';

export async function modelFromCheckpoint(
  core: Core,
  checkpoint: Checkpoint,
  options: Parameters<typeof streamTensors>[1] = {},
): Promise<Model> {
  const builder = core.modelBuilder(checkpoint.config);
  for await (const { tensor, offset, bytes } of streamTensors(checkpoint, options)) {
    if (offset === 0) builder.allocate(tensor.name, tensor.dtype);
    builder.write(tensor.name, offset, bytes);
    if (offset + bytes.byteLength === tensor.byteLength) builder.seal(tensor.name);
  }
  return builder.finish();
}

export async function modelFromFiles(core: Core, files: CheckpointInput): Promise<Model> {
  return modelFromCheckpoint(core, await openCheckpoint(files));
}

/** Files of the fixtures, by the name that each has in the checkpoint. */
export async function fixtureFiles(
  ...paths: string[]
): Promise<Record<string, Uint8Array<ArrayBuffer>>> {
  const entries = await Promise.all(
    paths.map(async (path) => [path.split('/').at(-1)!, await fixtureBytes(path)] as const),
  );
  return Object.fromEntries(entries);
}
