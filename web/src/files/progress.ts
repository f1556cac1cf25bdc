/** The progress of a long operation on files. */
export interface Progress {
  /** `download`: into the cache; `verify`: of a cached entry; `load`: of weights. */
  readonly stage: 'download' | 'verify' | 'load';
  /** Bytes done so far. */
  readonly bytes: number;
  /** Total number of bytes. */
  readonly total: number;
}

/** Called after every piece. */
export type OnProgress = (progress: Progress) => void;
