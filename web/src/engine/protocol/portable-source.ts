/** A model source in the form in which the page sends it to the worker. */

/** An absolute address. In Node it may also be a `file:` address or a path. */
export interface Address {
  readonly url: string;
}

export type PortableFile = Address | Blob | ArrayBuffer | Uint8Array;

/** A source that can be sent to the worker. */
export type PortableSource =
  | { readonly kind: 'one'; readonly file: PortableFile }
  | { readonly kind: 'many'; readonly files: readonly (readonly [string, PortableFile])[] };

/** Whether this is Node, where a string that is not an address is a path. */
export function isNode(): boolean {
  return (
    (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !==
    undefined
  );
}
