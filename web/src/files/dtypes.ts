/**
 * Storage types of tensors, as in `core/include/kvlens/dtype.h`, and how the file formats name
 * them.
 */

import type { DType } from '../types.js';

/** Values in one block (1 for plain floats) and the bytes that hold them. */
export interface DTypeInfo {
  readonly blockValues: number;
  readonly blockBytes: number;
}

/** Every storage type. */
export const dtypes = {
  f64: { blockValues: 1, blockBytes: 8 },
  f32: { blockValues: 1, blockBytes: 4 },
  f16: { blockValues: 1, blockBytes: 2 },
  bf16: { blockValues: 1, blockBytes: 2 },
  q8_0: { blockValues: 32, blockBytes: 34 },
  q4_0: { blockValues: 32, blockBytes: 18 },
  q4_1: { blockValues: 32, blockBytes: 20 },
  q5_0: { blockValues: 32, blockBytes: 22 },
  q5_1: { blockValues: 32, blockBytes: 24 },
  q2_k: { blockValues: 256, blockBytes: 84 },
  q3_k: { blockValues: 256, blockBytes: 110 },
  q4_k: { blockValues: 256, blockBytes: 144 },
  q5_k: { blockValues: 256, blockBytes: 176 },
  q6_k: { blockValues: 256, blockBytes: 210 },
} as const satisfies Readonly<Record<DType, DTypeInfo>>;

/** What messages say is supported. */
export const dtypeList =
  'F64, F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K';

// ggml.h, enum ggml_type; 4 and 5 were removed, the rest up to 39 are types without a kernel here.
const ggmlNames = [
  'F32',
  'F16',
  'Q4_0',
  'Q4_1',
  'Q4_2',
  'Q4_3',
  'Q5_0',
  'Q5_1',
  'Q8_0',
  'Q8_1',
  'Q2_K',
  'Q3_K',
  'Q4_K',
  'Q5_K',
  'Q6_K',
  'Q8_K',
  'IQ2_XXS',
  'IQ2_XS',
  'IQ3_XXS',
  'IQ1_S',
  'IQ4_NL',
  'IQ3_S',
  'IQ2_S',
  'IQ4_XS',
  'I8',
  'I16',
  'I32',
  'I64',
  'F64',
  'IQ1_M',
  'BF16',
  'Q4_0_4_4',
  'Q4_0_4_8',
  'Q4_0_8_8',
  'TQ1_0',
  'TQ2_0',
  'IQ4_NL_4_4',
  'IQ4_NL_4_8',
  'IQ4_NL_8_8',
  'MXFP4',
];

/** Name of a ggml type number for messages. */
export function ggmlTypeName(type: number): string {
  return ggmlNames[type] ?? `type ${type}`;
}

/** Storage type by its name in either format (`F32`, `BF16`, `Q4_K`), or undefined. */
export function dtypeByName(name: string): DType | undefined {
  const lower = name.toLowerCase();
  return Object.hasOwn(dtypes, lower) ? (lower as DType) : undefined;
}
