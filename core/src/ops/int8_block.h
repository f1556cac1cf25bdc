// 32 input values rounded to 8 bits, in every form that an integer kernel reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvlens::ops {

inline constexpr std::size_t int8_block_values = 32;

// Three cache lines; a kernel touches one or two of them.
struct alignas(64) Int8Block {
  std::uint8_t magnitude[int8_block_values];  // |value|
  std::uint8_t sign[int8_block_values];       // 0xff where value < 0

  std::int8_t value[int8_block_values];  // -127..127
  float scale;
  float sum;                    // scale * count
  float half_sum[2];            // scale * half_count
  std::int32_t count;           // sum of the values
  std::int32_t half_count[2];   // of values 0..15, of 16..31
  std::int32_t negative_count;  // sum of the magnitudes of negative values

  std::int16_t wide[int8_block_values];  // value
};

// scale = max|x| / 127; value = x * (127 / max|x|), to the nearest integer, ties to even.
// A block whose largest magnitude is below 2^-120 becomes zeros with scale 0 (127 / max would
// overflow near the end of the range); a NaN or infinity in x makes the scale NaN, so that it
// reaches every output.
void quantise(const float* x, Int8Block& block) noexcept;

}  // namespace kvlens::ops
