// What a second build does, with every compiler that can be tried here, and which sources the
// variants of the module share. Compiles a few small sources in a scratch copy of the checkout.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const compilerFolder = execFileSync(join(root, 'wasm/toolchain/find.sh'), {
  encoding: 'utf8',
}).trim();

const objectOf = (source) => `wasm/CMakeFiles/kvlens_core_simd.dir/__/core/src/${source}.obj`;
const [memory, dtype] = ['base/memory.cc', 'base/dtype.cc'];

// A folder with an emcc that stands for one of emsdk, whose tools lie outside any checkout.
function folderOfTools(scratch) {
  const folder = join(scratch, 'emsdk');
  mkdirSync(folder);
  for (const tool of ['emcc', 'em++', 'emar', 'emranlib']) {
    const script = `#!/bin/sh\nexec '${join(compilerFolder, tool)}' "$@"\n`;
    writeFileSync(join(folder, tool), script, { mode: 0o755 });
  }
  return folder;
}

for (const kind of ['the compiler that set-up finds', 'an emcc on PATH']) {
  describe(`a build with ${kind}`, () => {
    let scratch;
    let env;
    // Builds, and gives the sources that were compiled.
    const build = () => {
      const log = execFileSync(
        'ninja',
        ['-C', join(scratch, 'kvlens/.build/wasm'), '-v', objectOf(memory), objectOf(dtype)],
        { encoding: 'utf8', env },
      );
      return [memory, dtype].filter((source) => log.includes(` -o ${objectOf(source)} `));
    };
    const edit = (path) => appendFileSync(join(scratch, 'kvlens', path), '\n// One more line.\n');

    before(() => {
      scratch = mkdtempSync(join(tmpdir(), 'kvlens-build-'));
      const copy = join(scratch, 'kvlens');
      for (const path of ['CMakeLists.txt', 'CMakePresets.json', 'package.json', 'core', 'wasm'])
        cpSync(join(root, path), join(copy, path), { recursive: true });
      env = { ...process.env };
      if (kind === 'an emcc on PATH') env.PATH = `${folderOfTools(scratch)}:${env.PATH}`;
      execFileSync('cmake', ['--preset', 'wasm', '-DKVLENS_TESTS=OFF'], { cwd: copy, env });
      assert.deepEqual(build(), [memory, dtype]);
    });
    after(() => rmSync(scratch, { recursive: true, force: true }));

    test('compiles nothing when nothing has changed', () => {
      assert.deepEqual(build(), []);
    });

    test('compiles the one source that has changed', () => {
      edit(`core/src/${memory}`);
      assert.deepEqual(build(), [memory]);
      assert.deepEqual(build(), []);
    });

    test('compiles the sources that include a header that has changed', () => {
      edit('core/include/kvlens/memory.h');
      assert.deepEqual(build(), [memory]);
      edit('core/include/kvlens/dtype.h');
      assert.deepEqual(build(), [dtype]);
      assert.deepEqual(build(), []);
    });
  });
}

test('a second build of the package and of the Lab finds both up to date', () => {
  for (const step of ['package', 'lab']) {
    const run = () =>
      execFileSync('node', [`tools/build-${step}.mjs`], { cwd: root, encoding: 'utf8' });
    run();
    assert.match(run(), /is up to date$/m);
  }
});

test('relaxed SIMD changes the sources that wasm/CMakeLists.txt compiles twice, and no other', () => {
  const listed = /set\(relaxed_sources (.*)\)/.exec(
    readFileSync(join(root, 'wasm/CMakeLists.txt'), 'utf8'),
  )[1];
  const folder = join(root, 'core/src');
  const sources = readdirSync(folder, { recursive: true }).filter((path) => /\.(cc|h)$/.test(path));
  for (const path of sources.filter((path) => !path.startsWith('ops/'))) {
    const text = readFileSync(join(folder, path), 'utf8');
    assert.doesNotMatch(text, /wasm_simd128|__wasm_relaxed_simd__|int8_dot\.h/, path);
  }
  const scratch = mkdtempSync(join(tmpdir(), 'kvlens-relaxed-'));
  // The code as the optimiser gets it, without the names of the target's features.
  const codeOf = (path, ...flags) => {
    const output = join(scratch, 'code.ll');
    const include = [`-I${join(root, 'core/include')}`, `-I${folder}`];
    execFileSync(
      join(compilerFolder, 'em++'),
      [
        ...['-std=c++2b', '-fno-exceptions', '-fno-rtti', '-O1', '-Xclang', '-disable-llvm-passes'],
        ...['-msimd128', ...flags, ...include, '-S', '-emit-llvm', join(folder, path)],
        ...['-o', output],
      ],
      { cwd: root },
    );
    return readFileSync(output, 'utf8').replace(/^attributes .*$| #\d+|!\{i64 \d+\}/gm, '');
  };
  const changed = sources
    .filter((path) => /^ops\/.*\.cc$/.test(path))
    .filter((path) => codeOf(path) !== codeOf(path, '-mrelaxed-simd'));
  rmSync(scratch, { recursive: true, force: true });
  assert.deepEqual(changed.sort(), listed.split(' ').sort());
});
