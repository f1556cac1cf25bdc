// The prompt as text and as tokens: tokenized while it is typed, or read as ids where a model has
// no tokenizer.
import { clearProblem, live, pending, promptText, promptTokens, report } from './store.js';
import { piecesOf } from './pieces.js';
import { asProblem } from './jobs.js';
import type { Token } from './trace.js';

let latest = 0;

function parseIds(text: string, vocabSize: number): Token[] | string {
  const words = text.split(/[\s,;]+/).filter((word) => word !== '');
  const wrong = words.find((word) => !/^\d+$/.test(word) || Number(word) >= vocabSize);
  return wrong ?? words.map((word) => ({ id: Number(word), text: String(Number(word)) }));
}

export async function setPrompt(text: string): Promise<void> {
  const turn = ++latest;
  promptText.value = text;
  pending.value = [];
  const model = live.value?.model;
  if (!model) return;
  if (!model.tokenizer) {
    const { vocabSize } = model.config;
    const tokens = parseIds(text, vocabSize);
    if (typeof tokens === 'string') {
      promptTokens.value = [];
      report('prompt', { kind: 'ids', text: tokens, vocabSize });
    } else {
      clearProblem('prompt');
      promptTokens.value = tokens;
    }
    return;
  }
  try {
    const ids = await model.tokenize(text);
    const piece = await piecesOf(model, [...ids]);
    // Typing goes on while the worker answers: only the newest answer counts.
    if (turn !== latest) return;
    promptTokens.value = [...ids].map((id) => ({ id, text: piece(id) }));
    clearProblem('prompt');
  } catch (error) {
    if (turn === latest) report('prompt', asProblem(error));
  }
}
