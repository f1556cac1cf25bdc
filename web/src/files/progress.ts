/** How far a long operation on files has come. */
export interface Progress {
  /** `download` into the cache, `verify` a cached entry, `load` weights. */
  readonly stage: 'download' | 'verify' | 'load';
  /** Bytes done so far. */
  readonly bytes: number;
  /** Bytes in all. */
  readonly total: number;
}

/** Is told of every piece. */
export type OnProgress = (progress: Progress) => void;
