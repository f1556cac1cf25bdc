import { createEngine } from 'kvlens';

const engine = await createEngine();
const model = await engine.loadModel(process.argv[2]); // a path or an address of a GGUF file
const session = await model.createSession();

const stream = session.generate({ prompt: 'Once upon a time', maxNewTokens: 60 });
for await (const { text } of stream) process.stdout.write(text);

const { work } = await stream.result;
const { bytesEqual, replay } = await session.verify();
console.log(`
attention scores: ${work.attentionScoreValues} with the cache, ${replay.work.attentionScoreValues} in one replay
cache and replay give the same bytes: ${bytesEqual}`);
await engine.dispose();
