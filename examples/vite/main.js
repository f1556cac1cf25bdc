import { createEngine } from 'kvlens';

const [input, output] = [document.querySelector('input'), document.querySelector('output')];
const engine = await createEngine();

input.onchange = async () => {
  const model = await engine.loadModel(input.files[0], {
    onProgress: ({ bytes, total }) => (output.value = `${bytes} of ${total} bytes`),
  });
  const session = await model.createSession();
  output.value = '';
  for await (const { text } of session.generate({ prompt: 'Once upon a time', maxNewTokens: 60 })) {
    output.value += text;
  }
};
