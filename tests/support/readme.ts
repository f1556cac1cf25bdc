/** The examples of README.md, which say `<!-- example: NAME -->` before their code. */
import { readFileSync } from 'node:fs';

export function readmeExample(name: string): string {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const found = new RegExp(`<!-- example: ${name} -->\\n\`\`\`js\\n([^]*?)\`\`\``).exec(readme);
  if (found === null) throw new Error(`README.md has no example "${name}"`);
  return found[1]!;
}
