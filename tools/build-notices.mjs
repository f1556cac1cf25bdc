// `npm run notices`: writes THIRD_PARTY_NOTICES.md. The first part is tools/notices.md; the second
// lists the npm packages that web/ imports, and what they depend on, with their licences.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path) => readFileSync(join(root, path), 'utf8');
const manifestOf = (name) => JSON.parse(read(`node_modules/${name}/package.json`));

/** Names of the npm packages that the sources in a folder import, types aside. */
function importsOf(folder) {
  const names = new Set();
  for (const path of readdirSync(join(root, folder), { recursive: true })) {
    if (!/\.tsx?$/.test(path)) continue;
    const text = read(join(folder, path));
    if (path.endsWith('.tsx')) names.add('preact'); // every element calls its JSX runtime
    for (const [, kind, specifier] of text.matchAll(
      /(import type|import|export)\b[^'";]*?\bfrom\s+'([^'.][^']*)'/g,
    )) {
      const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)[0];
      if (kind !== 'import type' && name !== 'kvlens' && !name.startsWith('node:')) names.add(name);
    }
  }
  return names;
}

/** The packages and everything that they depend on, sorted. */
function closure(names) {
  const all = new Set(names);
  for (const name of all)
    for (const dependency of Object.keys(manifestOf(name).dependencies ?? {})) all.add(dependency);
  return [...all].sort();
}

function licenceText(name) {
  const file = readdirSync(join(root, 'node_modules', name)).find((path) =>
    /^licen[cs]e(\.(md|txt))?$/i.test(path),
  );
  if (file === undefined) throw new Error(`${name} has no licence file`);
  return read(join('node_modules', name, file))
    .replaceAll('\r\n', '\n')
    .trim();
}

/** The whole of THIRD_PARTY_NOTICES.md. */
export function notices() {
  const inPackage = new Set(closure(importsOf('web/src')));
  const packages = closure([...inPackage, ...importsOf('web/lab/src')]);
  const byText = new Map();
  for (const name of packages) {
    const text = licenceText(name);
    byText.set(text, [...(byText.get(text) ?? []), name]);
  }
  const row = (name) => {
    const { version, license } = manifestOf(name);
    const use = inPackage.has(name) ? 'the package depends on it; in the Lab' : 'in the Lab';
    return `- ${name} ${version} (${license}): ${use}`;
  };
  const sections = [...byText].map(
    ([text, names]) => `### ${names.join(', ')}\n\n\`\`\`\n${text}\n\`\`\``,
  );
  return `${read('tools/notices.md').trim()}

## npm packages

npm installs the dependencies of the package beside it; the Lab contains them and its own.

${packages.map(row).join('\n')}

${sections.join('\n\n')}
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(join(root, 'THIRD_PARTY_NOTICES.md'), notices());
