#include "ops/int8_block.h"

#include <limits>

#include "ops/vector.h"

namespace kvlens::ops {
namespace {

std::int32_t total(i32x4 v) noexcept { return (v[0] + v[1]) + (v[2] + v[3]); }

// The low halves of eight integers.
i16x8 narrow(i32x4 a, i32x4 b) noexcept {
  return __builtin_shufflevector(std::bit_cast<i16x8>(a), std::bit_cast<i16x8>(b), 0, 2, 4, 6, 8,
                                 10, 12, 14);
}
void store_words(std::int16_t* to, i32x4 a, i32x4 b) noexcept {
  const i16x8 words = narrow(a, b);
  std::memcpy(to, &words, sizeof words);
}
// The low bytes of sixteen integers.
void store_bytes(void* to, const i32x4 (&v)[4]) noexcept {
  const i8x16 low = std::bit_cast<i8x16>(narrow(v[0], v[1]));
  const i8x16 high = std::bit_cast<i8x16>(narrow(v[2], v[3]));
  const i8x16 bytes =
      __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  std::memcpy(to, &bytes, sizeof bytes);
}

}  // namespace

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

  const f32x4 shift = splat(12582912.0f);  // 1.5 * 2^23: rounds to the nearest integer
  i32x4 magnitudes = splat(std::int32_t{0});
  for (std::size_t h = 0; h < 2; ++h) {
    i32x4 value[4];
    i32x4 magnitude[4];
    i32x4 sign[4];
    i32x4 counts = splat(std::int32_t{0});
    for (std::size_t v = 0; v < 4; ++v) {
      // Without a scale every value is 0, whatever x is.
      const f32x4 scaled = some ? load(x + 16 * h + v * n_lanes) * splat(inverse) : splat(0.0f);
      value[v] = std::bit_cast<i32x4>(scaled + shift) - std::bit_cast<i32x4>(shift);
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
