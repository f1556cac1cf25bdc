// Dots of four rows' interleaved bytes with the input's, on two kinds of machine.
//
// A vector of weights holds four consecutive quants of each of four rows; lane i of a finished sum
// is row i's dot. Weights are either signed bytes or unsigned quants below 64; inputs are
// -127..127. The sums are exact, so their order is free and both targets agree to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/int8_block.h"
#include "ops/vector.h"

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace kvlens::ops {

inline i16x8 widen_low(i8x16 v) noexcept {
#if defined(__wasm_simd128__)
  return std::bit_cast<i16x8>(wasm_i16x8_extend_low_i8x16(std::bit_cast<v128_t>(v)));
#else
  return std::bit_cast<i16x8>(__builtin_shufflevector(i8x16{}, v, 0, 16, 0, 17, 0, 18, 0, 19, 0, 20,
                                                      0, 21, 0, 22, 0, 23)) >>
         8;
#endif
}
inline i16x8 widen_high(i8x16 v) noexcept {
#if defined(__wasm_simd128__)
  return std::bit_cast<i16x8>(wasm_i16x8_extend_high_i8x16(std::bit_cast<v128_t>(v)));
#else
  return std::bit_cast<i16x8>(__builtin_shufflevector(i8x16{}, v, 0, 24, 0, 25, 0, 26, 0, 27, 0, 28,
                                                      0, 29, 0, 30, 0, 31)) >>
         8;
#endif
}
// Sums of adjacent products.
inline i32x4 pair_dot(i16x8 a, i16x8 b) noexcept {
#if defined(__wasm_simd128__)
  return std::bit_cast<i32x4>(
      wasm_i32x4_dot_i16x8(std::bit_cast<v128_t>(a), std::bit_cast<v128_t>(b)));
#elif defined(__SSE2__)
  return std::bit_cast<i32x4>(_mm_madd_epi16(std::bit_cast<__m128i>(a), std::bit_cast<__m128i>(b)));
#else
  const auto x = std::bit_cast<i32x4>(a);
  const auto y = std::bit_cast<i32x4>(b);
  return ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16);
#endif
}
// Lane i is the sum of pairs 2i and 2i + 1.
inline i32x4 add_pairs(i32x4 low, i32x4 high) noexcept {
  return __builtin_shufflevector(low, high, 0, 2, 4, 6) +
         __builtin_shufflevector(low, high, 1, 3, 5, 7);
}

// SIMD128: products of 16-bit values.
struct PairDot {
  // Groups of rows that one input row is multiplied with at a time, such that registers suffice.
  static constexpr std::size_t most_groups_side_by_side = 2;
  static constexpr bool two_vectors_of_signed_input = false;
  struct Sum {
    i32x4 low;  // pairs of rows 0 and 1
    i32x4 high;
    i32x4 start;
  };
  static Sum start_signed(std::int32_t) noexcept { return start_unsigned(0); }
  static Sum start_unsigned(std::int32_t start) noexcept {
    return {i32x4{}, i32x4{}, splat(start)};
  }
  // Columns 4v .. 4v + 3, twice.
  static i16x8 input_for_signed(const Int8Block& x, std::size_t v) noexcept {
    const auto four = load_as<std::int64_t>(x.wide + 4 * v);
    return std::bit_cast<i16x8>(i64x2{four, four});
  }
  static i16x8 input_for_unsigned(const Int8Block& x, std::size_t v) noexcept {
    return input_for_signed(x, v);
  }
  static void add_signed(Sum& sum, i8x16 weights, i16x8 input) noexcept {
    sum.low += pair_dot(widen_low(weights), input);
    sum.high += pair_dot(widen_high(weights), input);
  }
  static void add_unsigned(Sum& sum, i8x16 weights, i16x8 input) noexcept {
    add_signed(sum, weights, input);
  }
  static i32x4 finish(const Sum& sum) noexcept { return add_pairs(sum.low, sum.high) + sum.start; }
  static void pin(Sum& sum) noexcept {
    ops::pin(sum.low);
    ops::pin(sum.high);
  }
};

// Adds to each lane of `sum` the dot of four signed bytes with four of 0..127. Relaxed SIMD leaves
// open what happens to second operands above 127, and nothing else.
inline i32x4 quad_dot(i8x16 bytes, i8x16 seven_bits, i32x4 sum) noexcept {
#if defined(__wasm_relaxed_simd__)
  return std::bit_cast<i32x4>(wasm_i32x4_relaxed_dot_i8x16_i7x16_add(
      std::bit_cast<v128_t>(bytes), std::bit_cast<v128_t>(seven_bits), std::bit_cast<v128_t>(sum)));
#else
  // Even and odd bytes as words. Two products of at most 128 * 127 fit a word, and a row's two
  // words are the halves of its lane.
  const i16x8 a = std::bit_cast<i16x8>(bytes);
  const i16x8 b = std::bit_cast<i16x8>(seven_bits);
  const i32x4 pairs = std::bit_cast<i32x4>(((a << 8) >> 8) * ((b << 8) >> 8) + (a >> 8) * (b >> 8));
  return sum + (((pairs << 16) >> 16) + (pairs >> 16));
#endif
}

// Relaxed SIMD, and native code.
struct QuadDot {
  static constexpr std::size_t most_groups_side_by_side = 4;
  static constexpr bool two_vectors_of_signed_input = true;
  using Sum = i32x4;
  // Bytes 4v .. 4v + 3 of 32, four times.
  static i8x16 four(const void* bytes, std::size_t v) noexcept {
    if (__builtin_constant_p(v)) {  // one load serves four of them
      const auto all = load_as<i32x4>(static_cast<const std::byte*>(bytes) + v / 4 * 16);
      const i32x4 lane[] = {__builtin_shufflevector(all, all, 0, 0, 0, 0),
                            __builtin_shufflevector(all, all, 1, 1, 1, 1),
                            __builtin_shufflevector(all, all, 2, 2, 2, 2),
                            __builtin_shufflevector(all, all, 3, 3, 3, 3)};
      return std::bit_cast<i8x16>(lane[v % 4]);
    }
    const auto one = load_as<std::int32_t>(static_cast<const std::byte*>(bytes) + 4 * v);
    return std::bit_cast<i8x16>(splat(one));
  }
  // Signed weights take |x| as the 7-bit operand. For a negative x, w * x = (~w + 1) * |x|: flip
  // the weight's bits, and add all the |x| of negative x once, whatever the weights.
  struct SignedInput {
    i8x16 sign;
    i8x16 magnitude;
  };
  static Sum start_signed(std::int32_t negative_count) noexcept { return splat(negative_count); }
  static SignedInput input_for_signed(const Int8Block& x, std::size_t v) noexcept {
    return {four(x.sign, v), four(x.magnitude, v)};
  }
  static void add_signed(Sum& sum, i8x16 weights, const SignedInput& x) noexcept {
    sum = quad_dot(weights ^ x.sign, x.magnitude, sum);
  }
  // Unsigned quants are the 7-bit operand themselves.
  static Sum start_unsigned(std::int32_t start) noexcept { return splat(start); }
  static i8x16 input_for_unsigned(const Int8Block& x, std::size_t v) noexcept {
    return four(x.value, v);
  }
  static void add_unsigned(Sum& sum, i8x16 weights, i8x16 x) noexcept {
    sum = quad_dot(x, weights, sum);
  }
  static i32x4 finish(const Sum& sum) noexcept { return sum; }
  static void pin(Sum& sum) noexcept { ops::pin(sum); }
};

}  // namespace kvlens::ops
