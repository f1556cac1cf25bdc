/** The Markdown files of the repository, and what they link to, name and run. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './packed.js';

/** Paths of all files of the repository: committed ones, and new ones that are not ignored. */
export const trackedFiles: readonly string[] = execFileSync(
  'git',
  ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
  { cwd: root, encoding: 'utf8' },
)
  .split('\0')
  .filter(Boolean);

/** All Markdown files, but the template from which the notices are made. */
export const markdownFiles: readonly string[] = trackedFiles.filter(
  (path) => path.endsWith('.md') && path !== 'tools/notices.md',
);

export const readText = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Contents of the fenced code blocks. */
export function codeBlocks(markdown: string): string[] {
  return [...markdown.matchAll(/^```[^\n]*\n([^]*?)^```$/gm)].map(([, code]) => code!);
}

/** The text without its fenced code blocks. */
export function prose(markdown: string): string {
  return markdown.replaceAll(/^```[^\n]*\n[^]*?^```$/gm, '');
}

/** Contents of the inline code. */
export function inlineCode(markdown: string): string[] {
  return [...prose(markdown).matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!);
}

/** Targets of links and pictures that point into the repository. */
export function relativeLinks(markdown: string): string[] {
  const text = prose(markdown).replaceAll(/`[^`\n]*`/g, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** Anchors that GitHub and npm give to the headings. */
export function anchors(markdown: string): string[] {
  return [...prose(markdown).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
