/** A model source in the form in which the page sends it to the worker. */

/**
 * One file: an absolute address to fetch, a path or `file:` address of Node, or its bytes. Only the
 * page knows which a string is, since a worker cannot tell every page from Node.
 */
export type PortableFile =
  { readonly url: string } | { readonly path: string } | Blob | ArrayBuffer | Uint8Array;

/** A source that can be sent to the worker. */
export type PortableSource =
  | { readonly kind: 'one'; readonly file: PortableFile }
  | { readonly kind: 'many'; readonly files: readonly (readonly [string, PortableFile])[] };
