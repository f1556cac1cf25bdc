/** The package as others get it: packed by npm. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the checkout. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Packs the package into `folder`, as `npm pack` in a checkout does, and returns its path. */
export function packInto(folder: string): string {
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
      cwd: root,
      encoding: 'utf8',
    }),
  ) as { filename: string }[];
  return join(folder, packed!.filename);
}

/** Installs what `folder`'s package.json asks for at run time, and `more`. */
export function npmInstall(folder: string, ...more: string[]): void {
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--no-save', '--omit=dev'];
  execFileSync('npm', ['install', ...options, ...more], { cwd: folder, stdio: 'pipe' });
}
