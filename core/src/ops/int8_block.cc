#include "ops/int8_block.h"

#include <limits>

#include "ops/vector.h"

namespace kvlens::ops {

void quantise(const float* x, Int8Block& block) noexcept {
  constexpr std::size_t n_vectors = int8_block_values / n_lanes;
  constexpr std::int32_t infinity_bits = 0x7f800000;
  // Magnitudes order like their bits, and NaN lies above infinity.
  i32x4 largest = splat(std::int32_t{0});
  for (std::size_t v = 0; v < n_vectors; ++v) {
    const i32x4 magnitude = std::bit_cast<i32x4>(load(x + v * n_lanes)) & 0x7fffffff;
    const i32x4 greater = magnitude > largest;
    largest = (greater & magnitude) | (~greater & largest);
  }
  std::int32_t bits = largest[0];
  for (std::size_t lane = 1; lane < n_lanes; ++lane) {
    if (largest[lane] > bits) bits = largest[lane];
  }
  const float max = std::bit_cast<float>(bits);
  const bool finite = bits < infinity_bits;
  const bool some = finite && max >= 0x1p-120f;
  const float inverse = some ? 127.0f / max : 0.0f;
  block.scale = some ? max / 127.0f : finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();

  std::int32_t counts[2] = {0, 0};
  std::int32_t negative = 0;
  const f32x4 shift = splat(12582912.0f);  // 1.5 * 2^23: rounds to the nearest integer
  for (std::size_t v = 0; v < n_vectors; ++v) {
    i32x4 rounded = splat(std::int32_t{0});
    if (some) {
      rounded = std::bit_cast<i32x4>(load(x + v * n_lanes) * splat(inverse) + shift) -
                std::bit_cast<i32x4>(shift);
    }
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
      const std::int32_t value = rounded[lane];
      const std::int32_t magnitude = value < 0 ? -value : value;
      const std::size_t i = v * n_lanes + lane;
      block.value[i] = static_cast<std::int8_t>(value);
      block.magnitude[i] = static_cast<std::uint8_t>(magnitude);
      block.sign[i] = value < 0 ? 0xff : 0;
      block.wide[i] = static_cast<std::int16_t>(value);
      counts[i / 16] += value;
      negative += value < 0 ? magnitude : 0;
    }
  }
  block.half_count[0] = counts[0];
  block.half_count[1] = counts[1];
  block.count = counts[0] + counts[1];
  block.negative_count = negative;
  block.half_sum[0] = block.scale * static_cast<float>(counts[0]);
  block.half_sum[1] = block.scale * static_cast<float>(counts[1]);
  block.sum = block.scale * static_cast<float>(block.count);
}

}  // namespace kvlens::ops
