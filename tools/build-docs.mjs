// `npm run docs`: the API reference in Markdown, from the declarations in dist/, into
// .build/docs/api (or the folder that is given).
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application } from 'typedoc';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = process.argv[2] ?? join(root, '.build/docs/api');
const entryPoints = ['index', 'core'].map((name) => join(root, `dist/${name}.d.ts`));
if (!entryPoints.every((path) => existsSync(path))) {
  console.error('docs: dist/ is missing; npm run build makes it');
  process.exit(1);
}

const application = await Application.bootstrapWithPlugins({
  entryPoints,
  tsconfig: join(root, 'tools/typedoc.tsconfig.json'),
  plugin: ['typedoc-plugin-markdown'],
  outputs: [{ name: 'markdown', path: out }],
  readme: 'none',
  name: 'kvlens',
  disableSources: true,
  excludePrivate: true,
  // Fields whose names say all they mean need no comment; everything else has one.
  requiredToBeDocumented: ['Class', 'Function', 'Interface', 'TypeAlias', 'Variable'],
  validation: { notExported: true, invalidLink: true, notDocumented: true },
});
const project = await application.convert();
if (project === undefined) process.exit(1);
application.validate(project);
if (application.logger.hasErrors() || application.logger.hasWarnings()) process.exit(1);
await application.generateOutputs(project);
console.log(`docs: ${out}`);
