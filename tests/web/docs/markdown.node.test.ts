// What the Markdown files say can be followed: links lead somewhere, paths exist, commands run
// something that is there, and the examples in them are the examples that run.
import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  anchors,
  codeBlocks,
  inlineCode,
  markdownFiles,
  prose,
  readText,
  relativeLinks,
  trackedFiles,
} from '../../support/markdown.js';
import { root } from '../../support/packed.js';

const manifest = JSON.parse(readText('package.json')) as {
  scripts: Record<string, string>;
  files: string[];
};
const folders = new Set(
  trackedFiles.flatMap((path) => {
    const parts = path.split('/').slice(0, -1);
    return parts.map((_, i) => parts.slice(0, i + 1).join('/'));
  }),
);

/** `a.{h,cc}` as `a.h` and `a.cc`. */
function expand(path: string): string[] {
  const braces = /^(.*)\{([^}]*)\}(.*)$/.exec(path);
  if (braces === null) return [path];
  return braces[2]!.split(',').flatMap((choice) => expand(braces[1]! + choice + braces[3]!));
}

/** Whether a path names something: from the root, or as the end of a path below `folder`. */
function exists(path: string, folder: string): boolean {
  const bare = path.replace(/\/$/, '');
  const pattern = new RegExp(
    `(^|/)${bare.replaceAll(/[.+?^$()[\]\\|]/g, '\\$&').replaceAll('*', '[^/]*')}$`,
  );
  const all = path.endsWith('/') ? [...folders] : trackedFiles;
  return all.some((known) => pattern.test(known) && (known === bare || known.startsWith(folder)));
}

const generated = /^(\.build|dist|node_modules|~|\$|\/)/;
const sourceFile = /^[\w@{*][\w@.{},*/-]*\.(h|cc|tsx?|m?js|jsx|css|sh|cmake|md|\{[\w,]+\})$/;
const folderPath = /^[\w@.-]+(\/[\w@.-]+)*\/$/;

describe.each(markdownFiles)('%s', (file) => {
  const text = readText(file);
  const folder = dirname(file) === '.' ? '' : `${dirname(file)}/`;

  test('links to files and headings that exist', () => {
    for (const link of relativeLinks(text)) {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? file : normalize(join(folder, path)).replace(/\/$/, '');
      expect(trackedFiles.includes(target) || folders.has(target), link).toBe(true);
      if (anchor !== undefined) expect(anchors(readText(target)), link).toContain(anchor);
    }
  });

  // The changelog and the notices tell of what was; paths in them may be gone.
  test.skipIf(/^(CHANGELOG|THIRD_PARTY_NOTICES)/.test(file))('names paths that exist', () => {
    for (const code of inlineCode(text)) {
      if (generated.test(code) || !(sourceFile.test(code) || folderPath.test(code))) continue;
      for (const path of expand(code)) {
        const anywhere = exists(path, folder) || exists(path, '');
        expect(anywhere, `${path} in ${file}`).toBe(true);
      }
    }
  });

  test('names commands that exist', () => {
    const commands = [...codeBlocks(text), ...inlineCode(text)].join('\n');
    for (const [, script] of commands.matchAll(/npm run (?:-s )?([\w:-]+)/g)) {
      const ofAnExample = folder.startsWith('examples/') && script === 'dev';
      if (!ofAnExample)
        expect(Object.keys(manifest.scripts), `npm run ${script}`).toContain(script);
    }
    for (const [, script] of commands.matchAll(/npm (start|test)\b/g))
      expect(Object.keys(manifest.scripts)).toContain(script);
    for (const [, path] of commands.matchAll(/(?:^|&& )node ((?:tools|tests|web|wasm)\/\S+)/gm))
      expect(trackedFiles, `node ${path}`).toContain(path);
    const blocks = codeBlocks(text).join('\n');
    for (const [, path] of blocks.matchAll(/(?:^|\s)((?:tests|web|wasm|core)\/[\w./-]+)/gm))
      expect(existsSync(join(root, path!)), path).toBe(true);
    const presets = readText('CMakePresets.json');
    for (const [, preset] of commands.matchAll(/--preset[ =]([\w-]+)/g))
      expect(presets, `--preset ${preset}`).toContain(`"name": "${preset}"`);
  });
});

const shipped = (path: string): boolean =>
  ['README.md', 'LICENSE', 'package.json', ...manifest.files].some(
    (entry) => path === entry || path.startsWith(`${entry}/`),
  );

test('every link of a shipped page leads to something that is shipped', () => {
  for (const file of markdownFiles.filter(shipped)) {
    for (const link of relativeLinks(readText(file))) {
      const path = link.split('#')[0]!;
      if (path === '') continue;
      const target = normalize(join(dirname(file), path)).replace(/\/$/, '');
      expect(shipped(target), `${link} in ${file}`).toBe(true);
    }
  }
});

test('everything that is shipped exists', () => {
  for (const path of manifest.files.filter((path) => path !== 'dist'))
    expect(statSync(join(root, path)), path).toBeDefined();
});

test('the snippets of README.md are the examples', () => {
  const snippets = [
    ...readText('README.md').matchAll(/<!-- from: (\S+) -->\n\n```js\n([^]*?)```/g),
  ];
  expect(snippets.length).toBe(3);
  for (const [, path, code] of snippets) {
    expect(code, path).toBe(readText(path!));
    expect(code!.trimEnd().split('\n').length).toBeLessThanOrEqual(16);
  }
});

// Phrases of a language that is not plain English, which once were everywhere.
const odd = [
  /\banew\b/i,
  /\bat hand\b/i,
  /\b(is|are|be|was) had\b/i,
  /\bone's own\b/i,
  /\bis no count\b/i,
  /\bcome by it\b/i,
  /\b(bytes?|bits?|values?|operations?|instructions?|tokens?|rows?|reads|ms|milliseconds?|microseconds?|cycles?|times|hash|kilobytes?) an? (row|layer|token|head|block|second|step|frame|position|cycle|line|value|vector|page|call|thread|dot|chunk)\b(?! time)/i,
  /\bone an? (row|layer|token|head|block|step|frame|position|cycle|line|case|call|thread|chunk)\b/i,
];

test.each(markdownFiles.filter((path) => !path.startsWith('THIRD_PARTY_NOTICES')))(
  '%s is in plain English',
  (file) => {
    const text = prose(readText(file)).replaceAll(/\s+/g, ' ');
    for (const phrase of odd) expect(phrase.exec(text)?.[0], String(phrase)).toBeUndefined();
  },
);
