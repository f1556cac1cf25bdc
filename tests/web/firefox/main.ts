// Writes what bits.node.test.ts compares: for every build that runs here, the bits of every storage
// type and the tokens of a sampled run.
import { builds, coreOf, logitsHashes, sampledTokens } from '../../support/bits.js';

const results: [string, unknown][] = [];
try {
  for (const build of builds) {
    const core = await coreOf(build);
    results.push([
      `${build.variant} ${build.threads}`,
      core && { storageTypes: logitsHashes(core), sampledTokens: sampledTokens(core) },
    ]);
    core?.dispose();
  }
} catch (error) {
  results.push(['error', String(error)]);
}
document.querySelector('pre')!.textContent = JSON.stringify(results);
