/**
 * The tables that TypeScript and the C++ core both need. The core's come as types from the
 * declarations that its build emits; this file compiles only while the lists kept in TypeScript are
 * the same, in the same order. It contains no code.
 */
import type { CoreErrorCode } from '../errors.js';
import type { dtypes } from '../files/dtypes.js';
import type * as core from '../kvlens-simd.js';
import type { DTYPES, STAGES, WORK_COUNTERS, Work } from '../types.js';

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type Check<T extends true> = T;

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name;
type CamelAll<Names extends readonly string[]> = {
  readonly [I in keyof Names]: Camel<Names[I]>;
};
type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export type Checks = [
  Check<Same<CoreErrorCode, core.CoreErrorCode>>,
  Check<Same<typeof STAGES, Readonly<core.Stages>>>,
  Check<Same<typeof WORK_COUNTERS, CamelAll<core.WorkCounterNames>>>,
  Check<Same<keyof Work, (typeof WORK_COUNTERS)[number]>>,
  Check<Same<typeof DTYPES, Readonly<core.DTypes>>>,
  Check<Same<{ [Name in keyof typeof dtypes]: Writable<(typeof dtypes)[Name]> }, core.DTypeInfos>>,
];
