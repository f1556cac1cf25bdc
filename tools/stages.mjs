// What `npm test` and the other scripts run: a table of stages, in their order. Any of its `groups`
// selects a stage. Set-up provides its `needs` (tools/requirements.mjs); `xz` stands for the
// fixtures, which it unpacks.
import { availableParallelism } from 'node:os';

const jobs = String(availableParallelism());

const configure = (preset) => ['cmake', '--preset', preset];
const build = (preset, ...targets) => [
  ...['cmake', '--build', '--preset', preset, '-j', jobs],
  ...targets.flatMap((target) => ['--target', target]),
];
const ctest = (preset) => ['ctest', '--preset', preset, '-j', jobs];

const cpp = ['cmake', 'ninja', 'ccache'];
const native = [...cpp, 'compiler', 'googletest', 'json', 'xz'];
const product = ['cmake', 'ninja', 'emscripten'];

const stages = [
  {
    name: 'lint',
    groups: ['lint'],
    needs: ['clang-format'],
    commands: [
      ['node', 'tools/format.mjs'],
      [
        ...['npx', 'eslint', '--config', 'tools/eslint.config.mjs', '.'],
        // A rule looks at one file at a time, so what passed stays right until the file changes.
        ...['--cache', '--cache-strategy', 'content', '--cache-location', '.build/eslint-cache'],
      ],
      ['npx', 'stylelint', 'web/**/*.css'],
    ],
  },
  {
    name: 'native',
    groups: ['core'],
    needs: native,
    commands: [
      configure('dev'),
      build('dev'),
      ctest('dev'),
      // ctest keeps to itself what a passing test prints; these say which golden folders were read.
      ['.build/dev/tests/kvlens_core_tests', '--gtest_filter=GoldenFolders*', '--gtest_brief=1'],
    ],
  },
  {
    name: 'sanitizers',
    groups: ['core'],
    needs: native,
    commands: [configure('asan'), build('asan'), ctest('asan')],
  },
  {
    name: 'wasm',
    groups: ['wasm'],
    needs: [...product, 'ccache', 'googletest', 'json', 'xz'],
    commands: [configure('wasm'), build('wasm', 'kvlens_wasm_tests'), ctest('wasm')],
  },
  {
    name: 'build',
    groups: ['build', 'web'],
    needs: product,
    commands: [configure('wasm'), build('wasm'), ['node', 'tools/build-package.mjs']],
  },
  {
    name: 'clang-tidy',
    groups: ['lint'],
    needs: [...native, 'emscripten', 'clang-tidy'],
    commands: [configure('dev'), configure('wasm'), ['node', 'tools/tidy.mjs']],
  },
  {
    name: 'web',
    groups: ['web'],
    needs: ['xz', 'chromium', 'firefox'],
    commands: [
      ['npx', 'tsc', '-p', 'tests/web'],
      ['npx', 'vitest', 'run', '--no-color'],
    ],
  },
  {
    name: 'lab-build',
    groups: ['lab-build'],
    needs: [],
    commands: [['node', 'tools/build-lab.mjs']],
  },
  {
    name: 'tools',
    groups: ['tools'],
    needs: product,
    commands: [['node', '--test', 'tests/tools/build.test.mjs']],
  },
  {
    name: 'lab',
    groups: ['lab'],
    needs: ['xz', 'chromium', 'fonts'],
    commands: [
      ['npx', 'tsc', '-p', 'tests/lab'],
      ['npx', 'playwright', 'test', '-c', 'tests/lab/playwright.config.ts'],
    ],
  },
];

// The stages of groups, or all; an unknown group ends the process.
export function selectStages(groups) {
  const known = new Set(stages.flatMap((stage) => stage.groups));
  const unknown = groups.find((group) => !known.has(group));
  if (unknown !== undefined) {
    console.error(`unknown group "${unknown}"; there are: ${[...known].join(', ')}`);
    process.exit(2);
  }
  if (groups.length === 0) return stages;
  return stages.filter((stage) => stage.groups.some((group) => groups.includes(group)));
}
