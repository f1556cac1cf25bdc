// The text of tokens. A piece never changes, so each is asked for once.
import type { EngineModel } from 'kvlens';

const known = new WeakMap<EngineModel, Map<number, string>>();

/**
 * How each of `ids` is written: its piece of text, or the id itself where there is no tokenizer.
 */
export async function piecesOf(
  model: EngineModel,
  ids: readonly number[],
): Promise<(id: number) => string> {
  if (!model.tokenizer) return String;
  const pieces = known.get(model) ?? new Map<number, string>();
  known.set(model, pieces);
  const asked = [...new Set(ids)].filter((id) => !pieces.has(id));
  if (asked.length > 0) {
    const texts = await model.pieces(asked);
    asked.forEach((id, index) => pieces.set(id, texts[index] ?? String(id)));
  }
  return (id) => pieces.get(id) ?? String(id);
}
