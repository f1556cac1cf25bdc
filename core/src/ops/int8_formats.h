// The packed block formats (ops/packing.h) as vectors of four rows: for each, its quants four
// columns at a time and its scales and mins, one row a lane. ops/blocks.cc says the same a row at a
// time.
#pragma once

#include <cstddef>
#include <utility>

#include "ops/blocks.h"
#include "ops/half.h"
#include "ops/vector.h"

namespace kvlens::ops {

#define KVLENS_INLINE inline __attribute__((always_inline))

// Calls f(integral_constant) for 0..n-1, unrolled.
template <std::size_t n, class F>
KVLENS_INLINE void unroll(F f) noexcept {
  [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<std::size_t, i>{}), ...);
  }(std::make_index_sequence<n>{});
}

// What four rows' blocks have for each run of `span` columns that shares a scale.
template <std::size_t n_spans>
struct Scales {
  f32x4 scale[n_spans];
  f32x4 min[n_spans];  // unused by formats without one
};

// What unpacking reads, to be kept in registers over a loop; what a format does not use costs
// nothing.
struct FormatConstants {
  HalfConstants half;
  u8x16 four_bits;
  u8x16 two_bits;
  u8x16 two_bits_at_4;
  u8x16 one_bit_at_2;
  u8x16 one_bit_at_4;
  u32x4 low_nibble;
  u32x4 spread;  // copies of a nibble 7 bits apart
};
inline constexpr FormatConstants format_constants = {
    half_constants,   splat_byte(0x0f), splat_byte(0x03), splat_byte(0x30),
    splat_byte(0x04), splat_byte(0x10), splat(15u),       splat(0x02040810u)};

template <DType type, int quant_offset, bool signed_weights = false>
struct BlockFormat {
  static constexpr DType dtype = type;
  static constexpr bool is_signed = signed_weights;
  static constexpr int offset = quant_offset;  // added to an unsigned quant
  static constexpr std::size_t span = scale_span(type);
  static constexpr bool with_min = has_min(type);

  // Unit `unit` of a field that begins at byte `start` of a plain block and is cut in units of
  // four.
  static KVLENS_INLINE u8x16 bytes(const std::byte* block, std::size_t start,
                                   std::size_t unit = 0) noexcept {
    return load_as<u8x16>(block + 4 * start + 16 * unit);
  }
  static KVLENS_INLINE f32x4 halves(const std::byte* block, std::size_t start,
                                    const FormatConstants& k) noexcept {
    return load_halves(block + 4 * start, k.half);
  }
  // Every byte's bits from bit `first` on, moved to bit `to`, where `mask` selects them. Shifts by
  // bytes cost several instructions on most machines, shifts by words one; the mask removes what
  // crosses into a byte.
  template <std::size_t first, std::size_t to = 0>
  static KVLENS_INLINE u8x16 bits(u8x16 v, u8x16 mask) noexcept {
    const u16x8 words = std::bit_cast<u16x8>(v);
    u16x8 moved = words;
    if constexpr (first > to) moved = words >> (first - to);
    if constexpr (first < to) moved = words << (to - first);
    return std::bit_cast<u8x16>(moved) & mask;
  }
  // Nibble 0 or 1 of every byte.
  template <std::size_t which>
  static KVLENS_INLINE u8x16 nibbles(u8x16 v, const FormatConstants& k) noexcept {
    return bits<4 * which>(v, k.four_bits);
  }
  // One bit a column in 32-bit words, as the fifth bit of columns 4v .. 4v + 3: the product puts
  // copies of the four bits 7 apart, so that each meets its own byte.
  template <std::size_t v>
  static KVLENS_INLINE u8x16 fifth_bits(u8x16 words, const FormatConstants& k) noexcept {
    const u32x4 four = (std::bit_cast<u32x4>(words) >> (4 * v)) & k.low_nibble;
    return std::bit_cast<u8x16>(four * k.spread) & k.one_bit_at_4;
  }
};

// Sixteen bytes as four vectors of floats.
KVLENS_INLINE void to_floats(u8x16 v, f32x4* out) noexcept {
  const auto convert = [out](u16x8 wide, std::size_t at) __attribute__((always_inline)) {
    const auto low = __builtin_shufflevector(wide, wide, 0, 1, 2, 3);
    const auto high = __builtin_shufflevector(wide, wide, 4, 5, 6, 7);
    out[at] = __builtin_convertvector(__builtin_convertvector(low, i32x4), f32x4);
    out[at + 1] = __builtin_convertvector(__builtin_convertvector(high, i32x4), f32x4);
  };
  const auto low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto high = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  convert(__builtin_convertvector(low, u16x8), 0);
  convert(__builtin_convertvector(high, u16x8), 2);
}

struct Q8_0 : BlockFormat<DType::q8_0, 0, true> {
  static constexpr std::size_t n_chunks = 1;
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return bytes(block, 2, v);
  }
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<1>& out) noexcept {
    out.scale[0] = halves(block, 0, k);
  }
};

struct Q4_0 : BlockFormat<DType::q4_0, -8> {
  static constexpr std::size_t n_chunks = 1;
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return nibbles<v / 4>(bytes(block, 2, v % 4), k);
  }
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<1>& out) noexcept {
    out.scale[0] = halves(block, 0, k);
  }
};

struct Q4_1 : BlockFormat<DType::q4_1, 0> {
  static constexpr std::size_t n_chunks = 1;
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return nibbles<v / 4>(bytes(block, 4, v % 4), k);
  }
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<1>& out) noexcept {
    out.scale[0] = halves(block, 0, k);
    out.min[0] = halves(block, 2, k);
  }
};

struct Q5_0 : BlockFormat<DType::q5_0, -16> {
  static constexpr std::size_t n_chunks = 1;
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return nibbles<v / 4>(bytes(block, 6, v % 4), k) | fifth_bits<v>(bytes(block, 2), k);
  }
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<1>& out) noexcept {
    out.scale[0] = halves(block, 0, k);
  }
};

struct Q5_1 : BlockFormat<DType::q5_1, 0> {
  static constexpr std::size_t n_chunks = 1;
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return nibbles<v / 4>(bytes(block, 8, v % 4), k) | fifth_bits<v>(bytes(block, 4), k);
  }
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<1>& out) noexcept {
    out.scale[0] = halves(block, 0, k);
    out.min[0] = halves(block, 2, k);
  }
};

struct Q2_K : BlockFormat<DType::q2_k, 0> {
  static constexpr std::size_t n_chunks = 8;
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return bits<2 * (chunk % 4)>(bytes(block, 16, 8 * (chunk / 4) + v), k.two_bits);
  }
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<16>& out) noexcept {
    const f32x4 d = halves(block, 80, k);
    const f32x4 dmin = halves(block, 82, k);
    for (std::size_t i = 0; i < 4; ++i) {
      const u8x16 packed = bytes(block, 0, i);
      to_floats(nibbles<0>(packed, k), out.scale + 4 * i);
      to_floats(nibbles<1>(packed, k), out.min + 4 * i);
    }
    for (std::size_t i = 0; i < 16; ++i) {
      out.scale[i] = d * out.scale[i];
      out.min[i] = -(dmin * out.min[i]);
    }
  }
};

struct Q3_K : BlockFormat<DType::q3_k, -4> {
  static constexpr std::size_t n_chunks = 8;
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return bits<2 * (chunk % 4)>(bytes(block, 32, 8 * (chunk / 4) + v), k.two_bits) |
           bits<chunk, 2>(bytes(block, 0, v), k.one_bit_at_2);
  }
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<16>& out) noexcept {
    const f32x4 d = halves(block, 108, k);
    const u8x16 first = bytes(block, 96, 0);
    const u8x16 second = bytes(block, 96, 1);
    const u8x16 high = bytes(block, 96, 2);
    to_floats(nibbles<0>(first, k) | bits<0, 4>(high, k.two_bits_at_4), out.scale);
    to_floats(nibbles<0>(second, k) | bits<2, 4>(high, k.two_bits_at_4), out.scale + 4);
    to_floats(nibbles<1>(first, k) | bits<4, 4>(high, k.two_bits_at_4), out.scale + 8);
    to_floats(nibbles<1>(second, k) | bits<6, 4>(high, k.two_bits_at_4), out.scale + 12);
    for (f32x4& scale : out.scale) scale = d * (scale - splat(32.0f));
  }
};

// d, dmin and 6-bit scales and mins, with which q4_k and q5_k begin.
template <DType type>
struct KBlockFormat : BlockFormat<type, 0> {
  using Base = BlockFormat<type, 0>;
  static constexpr std::size_t n_chunks = 8;
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<8>& out) noexcept {
    const f32x4 d = Base::halves(block, 0, k);
    const f32x4 dmin = Base::halves(block, 2, k);
    const u8x16 first = Base::bytes(block, 4, 0);
    const u8x16 second = Base::bytes(block, 4, 1);
    const u8x16 third = Base::bytes(block, 4, 2);
    to_floats(first & 63, out.scale);
    to_floats(second & 63, out.min);
    to_floats(
        Base::template nibbles<0>(third, k) | Base::template bits<6, 4>(first, k.two_bits_at_4),
        out.scale + 4);
    to_floats(
        Base::template nibbles<1>(third, k) | Base::template bits<6, 4>(second, k.two_bits_at_4),
        out.min + 4);
    for (std::size_t i = 0; i < 8; ++i) {
      out.scale[i] = d * out.scale[i];
      out.min[i] = -(dmin * out.min[i]);
    }
  }
};

struct Q4_K : KBlockFormat<DType::q4_k> {
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return nibbles<chunk % 2>(bytes(block, 16, 8 * (chunk / 2) + v), k);
  }
};

struct Q5_K : KBlockFormat<DType::q5_k> {
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    return nibbles<chunk % 2>(bytes(block, 48, 8 * (chunk / 2) + v), k) |
           bits<chunk, 4>(bytes(block, 16, v), k.one_bit_at_4);
  }
};

struct Q6_K : BlockFormat<DType::q6_k, -32> {
  static constexpr std::size_t n_chunks = 8;
  template <std::size_t chunk, std::size_t v>
  static KVLENS_INLINE u8x16 quants(const std::byte* block,
                                    [[maybe_unused]] const FormatConstants& k) noexcept {
    constexpr std::size_t half = chunk / 4;
    constexpr std::size_t quarter = chunk % 4;
    return nibbles<quarter / 2>(bytes(block, 0, 16 * half + 8 * (quarter % 2) + v), k) |
           bits<2 * quarter, 4>(bytes(block, 128, 8 * half + v), k.two_bits_at_4);
  }
  static KVLENS_INLINE void scales(const std::byte* block, const FormatConstants& k,
                                   Scales<16>& out) noexcept {
    const f32x4 d = halves(block, 208, k);
    for (std::size_t i = 0; i < 4; ++i) {
      to_floats(bytes(block, 192, i) ^ 0x80, out.scale + 4 * i);  // signed bytes, plus 128
    }
    for (f32x4& scale : out.scale) scale = d * (scale - splat(128.0f));
  }
};

}  // namespace kvlens::ops
