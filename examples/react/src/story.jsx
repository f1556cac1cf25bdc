import { createEngine } from 'kvlens';
import { useEffect, useState } from 'react';

// One worker for the whole page. It starts when the first story is told.
let engine;

/** Continues `prompt` with the model in `file`, and starts again when either changes. */
export function Story({ file, prompt }) {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');

  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setText('');
    setProblem('');
    tell(file, prompt, signal, (piece) => setText((before) => before + piece)).catch((error) => {
      if (!signal.aborted) setProblem(error.message);
    });
    return () => controller.abort();
  }, [file, prompt]);

  return problem ? <p role="alert">{problem}</p> : <output>{prompt + text}</output>;
}

// Loads the model for every story, which keeps this short. An application that tells many stories
// keeps the session and calls `generate` on it again.
async function tell(file, prompt, signal, onText) {
  engine ??= createEngine();
  const model = await (await engine).loadModel(file, { signal });
  try {
    const session = await model.createSession();
    try {
      const stream = session.generate({ prompt, maxNewTokens: 60, signal });
      for await (const { text } of stream) if (!signal.aborted) onText(text);
    } finally {
      await session.dispose();
    }
  } finally {
    await model.dispose();
  }
}
