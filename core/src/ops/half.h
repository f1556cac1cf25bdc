// IEEE half and bfloat16 to float, exactly, and float to both.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/vector.h"

namespace kvlens::ops {

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

inline float to_float(Half half) noexcept {
  const std::uint32_t sign = (half.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = half.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  // The exponent is 112 too small after the shift; the product also makes subnormals normal.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}
inline float to_float(BFloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
// To the nearest, of two equally near the one with an even last bit. A finite value above
// bfloat16_largest becomes infinite.
inline constexpr float bfloat16_largest = 0x1.fefffep127f;
inline BFloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
// The least half not below `value`, which is from 0 to the largest half, 65504.
inline Half to_half_not_below(float value) noexcept {
  constexpr float least_normal = 0x1p-14f;
  if (value < least_normal) return {static_cast<std::uint16_t>(std::ceil(value * 0x1p24f))};
  // Bits that a half has no room for carry into it; its exponent is 112 less.
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>(((bits + 0x1fffu) >> 13) - (112u << 10))};
}
inline float half_at(const std::byte* bytes) noexcept { return to_float(load_as<Half>(bytes)); }

inline u32x4 widen(const void* from) noexcept {
  using u16x4 = std::uint16_t __attribute__((vector_size(8)));
  return __builtin_convertvector(load_as<u16x4>(from), u32x4);
}

// What a conversion of four halves reads, to be kept in registers over a loop.
struct HalfConstants {
  u32x4 magnitude;
  u32x4 rebias;
  u32x4 sign;
  f32x4 least;
};
inline constexpr HalfConstants half_constants = {splat(0x0fffe000u), splat(0x38000000u),
                                                 splat(0x80000000u), splat(0x1p-14f)};
// Four finite halves, each in the low bits of a lane. Normal numbers need 112 added to their
// exponent. A subnormal one, f * 2^-14, then reads n = (1 + f) * 2^-15, and 2 n - 2^-14 is right;
// of normal numbers that is never below n. (A product with 2^112, as above, would be shorter, but
// subnormal operands are slow on many machines.)
inline f32x4 halves_to_floats(u32x4 bits, const HalfConstants& k = half_constants) noexcept {
  const f32x4 n = std::bit_cast<f32x4>(((bits << 13) & k.magnitude) + k.rebias);
  const f32x4 other = (n + n) - k.least;
  const f32x4 magnitude = other < n ? other : n;
  return std::bit_cast<f32x4>(std::bit_cast<u32x4>(magnitude) | ((bits << 16) & k.sign));
}
inline f32x4 load_halves(const void* from, const HalfConstants& k = half_constants) noexcept {
  return halves_to_floats(widen(from), k);
}
inline f32x4 load_bfloats(const void* from) noexcept {
  return std::bit_cast<f32x4>(widen(from) << 16);
}
// As `load` and `load_part` of vector.h.
inline f32x4 load(const BFloat16* from) noexcept { return load_bfloats(from); }
[[gnu::noinline]] inline f32x4 load_part(const BFloat16* from, std::size_t count) noexcept {
  BFloat16 lanes[n_lanes] = {};
  for (std::size_t i = 0; i < count; ++i) lanes[i] = from[i];
  return load(lanes);
}

}  // namespace kvlens::ops
