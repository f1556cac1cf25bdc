/** See tests/web/core/bits.test.ts. */
export const expectedBits = {
  storageTypes: {
    f64: '52809283a1b6b2a7',
    f32: '0e200cb0b40c101e',
    f16: 'e805597d0a2200c6',
    bf16: 'd787204bfaa59ee1',
    q8_0: '0b0aaf1c8183d09c',
    q4_0: '59310355db8ecd60',
    q4_1: '41d0dc0717a13ac7',
    q5_0: 'd226e9e46e00232f',
    q5_1: '86f5a1b064fa1077',
    q2_k: '1f005eaf3977bf6a',
    q3_k: '6e55659dfb9ab87d',
    q4_k: 'd6c846bc2308598f',
    q5_k: 'f84ebb1d6d8cb71e',
    q6_k: '7808b766f2e79c17',
    'q8_0, bf16 cache': '40cc90392c125096',
    'q8_0, q8_0 cache': '366fba8ad112efb3',
  },
  sampledTokens: [
    32, 0, 17, 8, 6, 2, 20, 14, 3, 38, 21, 36, 1, 6, 27, 36, 10, 10, 19, 24, 3, 9, 9, 13, 12, 25,
    37, 29, 11, 34, 29, 29, 37, 29, 30, 15, 21, 25, 25, 18, 13, 36, 3, 7, 29, 29, 30, 21, 27, 20,
    21, 6, 21, 31, 4, 18, 10, 10, 10, 21, 21, 10, 10, 10,
  ],
  stories260K: {
    f32: 'ea7eebea770df0ed',
    f16: '2d60270027421fe8',
    q8_0: '10425976581447ea',
    q4_0: '7d89aac1ef5c9eb1',
  },
};
