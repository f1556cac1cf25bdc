#include "ops/int8_block.h"

#include "ops/rounding.h"
#include "ops/vector.h"

namespace kvlens::ops {
namespace {

std::int32_t total(i32x4 v) noexcept { return (v[0] + v[1]) + (v[2] + v[3]); }

}  // namespace

void quantise(const float* x, Int8Block& block) noexcept {
  const IntegerScale by =
      integer_scale(largest_magnitude_bits(x, int8_block_values), 127.0f, 0x1p-120f);
  block.scale = by.scale;
  const bool some = by.inverse != 0;
  const f32x4 inverse = splat(by.inverse);
  i32x4 magnitudes = splat(std::int32_t{0});
  for (std::size_t h = 0; h < 2; ++h) {
    i32x4 value[4];
    i32x4 magnitude[4];
    i32x4 sign[4];
    i32x4 counts = splat(std::int32_t{0});
    for (std::size_t v = 0; v < 4; ++v) {
      // Without a scale every value is 0, whatever x is.
      value[v] = to_integers(some ? load(x + 16 * h + v * n_lanes) * inverse : splat(0.0f));
      sign[v] = value[v] >> 31;
      magnitude[v] = (value[v] ^ sign[v]) - sign[v];
      counts += value[v];
      magnitudes += magnitude[v];
    }
    store_bytes(block.value + 16 * h, value);
    store_bytes(block.magnitude + 16 * h, magnitude);
    store_bytes(block.sign + 16 * h, sign);
    store_words(block.wide + 16 * h, value[0], value[1]);
    store_words(block.wide + 16 * h + 8, value[2], value[3]);
    block.half_count[h] = total(counts);
    block.half_sum[h] = block.scale * static_cast<float>(block.half_count[h]);
  }
  block.count = block.half_count[0] + block.half_count[1];
  block.negative_count = (total(magnitudes) - block.count) / 2;
  block.sum = block.scale * static_cast<float>(block.count);
}

}  // namespace kvlens::ops
