/**
 * Bytes of fixtures and of other files of the checkout: from the file system in Node, over HTTP
 * from the test server in a browser. `npm run setup` unpacks the fixtures.
 */
const inNode = typeof process !== 'undefined' && process.versions?.node !== undefined;

/** A file by its path from the root of the checkout. */
export async function repositoryBytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  if (inNode) {
    const { readFile } = await import('node:fs/promises');
    return new Uint8Array(await readFile(new URL(`../../${path}`, import.meta.url)));
  }
  const response = await fetch(`/${path}`); // the test server's root is the checkout
  if (!response.ok) throw new Error(`${path}: status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** A fixture by its path in the unpacked fixtures, for example `hf/qwen2-bias-f32/config.json`. */
export function fixtureBytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  return repositoryBytes(`.build/fixtures/${path}`);
}

/** Where a fixture is: an address of the file system in Node, of the test server in a browser. */
export function fixtureUrl(path: string): URL {
  const inRoot = `.build/fixtures/${path}`;
  return inNode
    ? new URL(`../../${inRoot}`, import.meta.url)
    : new URL(`/${inRoot}`, location.href);
}

export async function fixtureText(path: string): Promise<string> {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await fixtureBytes(path));
}

export async function fixtureJson<T>(path: string): Promise<T> {
  return JSON.parse(await fixtureText(path)) as T;
}
