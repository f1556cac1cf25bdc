// `npm run bench`: kvlens and its peers in headless Chromium on the same made-up model. See
// ../README.md.
import { existsSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

import { openSession } from './browser-session.mjs';
import { buildPage } from './build-page.mjs';
import { cacheFolder, modelFile, peers } from './cache.mjs';
import { unavailable, weightsOf } from './entries.mjs';
import { measure } from './measure.mjs';
import { parseOptions, usage } from './options.mjs';
import { printReport } from './report.mjs';
import { rowsOf } from './rows.mjs';
import { runScaling } from './scaling.mjs';
import { serve } from './server.mjs';

const executablePath = process.env.CHROMIUM || '/usr/bin/chromium';

function fail(message) {
  console.error(`bench: ${message}`);
  process.exit(1);
}

function readOptions() {
  try {
    return parseOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`bench: ${error.message}\n\n${usage}`);
    process.exit(2);
  }
}

const options = readOptions();
if (options.help) {
  console.log(usage);
  process.exit(0);
}
if (options.scaling) options.runtimes = ['kvlens'];
if (!existsSync(executablePath))
  fail(`${executablePath} is missing: npm run setup, or set CHROMIUM`);

options.unavailable = unavailable(options);
for (const [runtime, reason] of Object.entries(options.unavailable)) {
  if (runtime === 'kvlens') fail(reason);
  console.log(`${runtime} is left out: ${reason}`);
}
const available = options.runtimes.filter((runtime) => !options.unavailable[runtime]);
if (available.length === 0) fail('nothing can be measured');
for (const weights of new Set(available.flatMap((runtime) => weightsOf[runtime]))) {
  if (!(options.quick && weights === 'f32')) modelFile(weights);
}

const start = performance.now();
const server = await serve({
  page: fileURLToPath(new URL('page', import.meta.url)),
  peers: `${cacheFolder}/node_modules`,
  models: cacheFolder,
  ...(available.includes('kvlens') ? { kvlens: await buildPage() } : {}),
});
const sessions = {};
try {
  for (const runtime of available)
    sessions[runtime] = await openSession(server.origin, executablePath);
  console.log(
    `${cpus()[0]?.model}, ${availableParallelism()} processors, Chromium ` +
      `${Object.values(sessions)[0].version()}; ${Object.entries(peers)
        .map((peer) => peer.join(' '))
        .join(', ')}`,
  );
  let rows;
  if (options.scaling) {
    rows = await runScaling(sessions.kvlens, options);
  } else {
    const groups = [];
    for (const threads of options.threads) groups.push(await measure(sessions, threads, options));
    rows = rowsOf(groups);
    printReport(rows, groups);
  }
  if (options.json) writeFileSync(options.json, `${JSON.stringify(rows, null, 1)}\n`);
} finally {
  for (const session of Object.values(sessions)) await session.close();
  server.close();
}
console.log(`\n${((performance.now() - start) / 60_000).toFixed(1)} minutes`);
