// What a checkout may need of the machine: how to look for it, and what installs it. Nothing here
// changes anything.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const isMac = process.platform === 'darwin';
const chromiumPaths = isMac
  ? [
      '/Applications/Chromium.app/Contents/MacOS/Chromium',
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    ]
  : ['chromium', 'chromium-browser', 'google-chrome'];
const firefoxPaths = isMac ? ['/Applications/Firefox.app/Contents/MacOS/firefox'] : ['firefox-esr'];
const llvm = (name) => [
  `${name}-19`,
  `/opt/homebrew/opt/llvm@19/bin/${name}`,
  `/usr/local/opt/llvm@19/bin/${name}`,
];
const includeFolders = ['/usr/include', '/usr/local/include', '/opt/homebrew/include'];

// `programs`: names on PATH or paths, of which one will do. `files`: likewise, of files.
// `version`: the lowest that will do, where older ones are still about. `apt` and `brew`: the
// packages. `optional`: set-up only mentions it; `leavesOut` is what is not run without it.
export const requirements = {
  cmake: { programs: ['cmake'], version: '3.25', apt: ['cmake'], brew: ['cmake'] },
  ninja: { programs: ['ninja'], apt: ['ninja-build'], brew: ['ninja'] },
  emscripten: { title: 'Emscripten 4.0', apt: ['debootstrap', 'bubblewrap'], brew: ['emscripten'] },
  compiler: isMac
    ? { title: 'a C++23 compiler', programs: ['clang++'], brew: ['llvm'] }
    : { title: 'g++ 12', programs: ['g++'], version: '12', apt: ['g++'] },
  googletest: {
    title: 'GoogleTest 1.12',
    files: [
      '/usr/src/googletest/CMakeLists.txt',
      ...includeFolders.slice(1).map((folder) => join(folder, 'gmock/gmock.h')),
    ],
    variable: 'KVLENS_GOOGLETEST',
    apt: ['googletest'],
    brew: ['googletest'],
  },
  json: {
    title: 'nlohmann/json 3.11',
    files: includeFolders.map((folder) => join(folder, 'nlohmann/json.hpp')),
    apt: ['nlohmann-json3-dev'],
    brew: ['nlohmann-json'],
  },
  xz: { programs: ['xz'], apt: ['xz-utils'], brew: ['xz'] },
  'clang-format': {
    title: 'clang-format 19',
    programs: llvm('clang-format'),
    apt: ['clang-format-19'],
    brew: ['llvm@19'],
  },
  'clang-tidy': {
    title: 'clang-tidy 19',
    programs: llvm('clang-tidy'),
    apt: ['clang-tidy-19'],
    brew: ['llvm@19'],
  },
  chromium: {
    title: 'Chromium',
    programs: chromiumPaths,
    apt: ['chromium'],
    brew: ['--cask', 'chromium'],
  },
  fonts: {
    title: 'the DejaVu fonts',
    files: isMac ? ['/System/Library/Fonts'] : ['/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf'],
    apt: ['fonts-dejavu-core'],
  },
  firefox: {
    title: 'Firefox ESR',
    programs: firefoxPaths,
    apt: ['firefox-esr'],
    brew: ['--cask', 'firefox'],
    optional: true,
    leavesOut: 'the tests in Firefox',
  },
  ccache: { programs: ['ccache'], apt: ['ccache'], brew: ['ccache'], optional: true },
};

const isFile = (path, mode) => {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
};

export function onPath(program) {
  const folders = isAbsolute(program) ? [''] : (process.env.PATH ?? '').split(delimiter);
  return folders
    .map((folder) => join(folder, program))
    .find((path) => isFile(path, constants.X_OK));
}

// The path of the program that meets the requirement, or undefined.
export function findProgram(name) {
  return requirements[name].programs.map(onPath).find((path) => path !== undefined);
}

export function atLeast(actual, needed) {
  const [a, b] = [actual, needed].map((version) => version.split('.').map(Number));
  for (let i = 0; i < b.length; ++i) {
    if ((a[i] ?? 0) !== b[i]) return (a[i] ?? 0) > b[i];
  }
  return true;
}

const findEmscripten = fileURLToPath(new URL('../wasm/toolchain/find.sh', import.meta.url));

export function isMet(name) {
  const { programs, version, files } = requirements[name];
  if (name === 'emscripten') return spawnSync(findEmscripten).status === 0;
  if (files) return files.some((path) => existsSync(path));
  const path = programs.map(onPath).find((found) => found !== undefined);
  if (path === undefined) return false;
  if (!version) return true;
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  return atLeast(/\d+(\.\d+)+/.exec(stdout)?.[0] ?? '0', version);
}

export function titleOf(name) {
  const { title, version } = requirements[name];
  return `${title ?? (version ? `${name} ${version}` : name)}${title || version ? ' or newer' : ''}`;
}

// The commands, usually one, that install `names` on this machine; undefined if we do not know.
export function installCommands(names) {
  const emsdk =
    'git clone https://github.com/emscripten-core/emsdk && emsdk/emsdk install latest && ' +
    'emsdk/emsdk activate latest && . emsdk/emsdk_env.sh';
  const packages = (manager, list) => [
    ...new Set(list.flatMap((name) => requirements[name][manager] ?? [])),
  ];
  if (isMac) {
    const casks = names.filter((name) => requirements[name].brew?.[0] === '--cask');
    const formulas = packages(
      'brew',
      names.filter((name) => !casks.includes(name)),
    );
    return [
      formulas.length > 0 && `brew install ${formulas.join(' ')}`,
      casks.length > 0 &&
        `brew install --cask ${casks.map((name) => requirements[name].brew[1]).join(' ')}`,
    ].filter(Boolean);
  }
  const others = names.filter((name) => name !== 'emscripten');
  return [
    others.length > 0 &&
      (onPath('apt-get')
        ? `sudo apt-get install ${packages('apt', others).join(' ')}`
        : `# with your package manager: ${others.map(titleOf).join(', ')}`),
    names.includes('emscripten') && emsdk,
  ].filter(Boolean);
}
