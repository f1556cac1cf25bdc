// Rounding of floats to integers of a common scale.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "ops/vector.h"

namespace kvlens::ops {

// Bits of the largest magnitude of `n` values, a multiple of four: magnitudes order like their
// bits, and NaN lies above infinity.
inline std::int32_t largest_magnitude_bits(const float* x, std::size_t n) noexcept {
  i32x4 largest = splat(std::int32_t{0});
  for (std::size_t i = 0; i < n; i += n_lanes) {
    const i32x4 magnitude = std::bit_cast<i32x4>(load(x + i)) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  std::int32_t bits = largest[0];
  for (std::size_t lane = 1; lane < n_lanes; ++lane) {
    if (largest[lane] > bits) bits = largest[lane];
  }
  return bits;
}

// value = integer * scale, integer = value * inverse to the nearest.
struct IntegerScale {
  float scale;
  float inverse;  // 0: every integer is 0
};
// For magnitudes up to that of `max_bits`, which becomes `largest`. Below `least`, where the
// inverse would overflow, values become zeros of scale 0; NaN and infinity make the scale NaN, so
// that they reach every result.
inline IntegerScale integer_scale(std::int32_t max_bits, float largest, float least) noexcept {
  constexpr std::int32_t infinity_bits = 0x7f800000;
  if (max_bits >= infinity_bits) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float max = std::bit_cast<float>(max_bits);
  if (max < least) return {0, 0};
  return {max / largest, largest / max};
}

// To the nearest integers, of two equally near the even one; |values| below 2^22.
inline i32x4 to_integers(f32x4 values) noexcept {
  const f32x4 shift = splat(12582912.0f);  // 1.5 * 2^23
  return std::bit_cast<i32x4>(values + shift) - std::bit_cast<i32x4>(shift);
}

// The low halves of eight integers.
inline i16x8 narrow(i32x4 a, i32x4 b) noexcept {
  return __builtin_shufflevector(std::bit_cast<i16x8>(a), std::bit_cast<i16x8>(b), 0, 2, 4, 6, 8,
                                 10, 12, 14);
}
inline void store_words(std::int16_t* to, i32x4 a, i32x4 b) noexcept {
  const i16x8 words = narrow(a, b);
  std::memcpy(to, &words, sizeof words);
}
// The low bytes of sixteen integers.
inline void store_bytes(void* to, const i32x4 (&v)[4]) noexcept {
  const i8x16 low = std::bit_cast<i8x16>(narrow(v[0], v[1]));
  const i8x16 high = std::bit_cast<i8x16>(narrow(v[2], v[3]));
  const i8x16 bytes =
      __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  std::memcpy(to, &bytes, sizeof bytes);
}

}  // namespace kvlens::ops
