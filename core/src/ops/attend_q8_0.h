// Rows of keys and values in Q8_0 blocks: of every 32 values a half and 32 signed bytes, 34 bytes
// (ggml-common.h of ggml-org/llama.cpp). Attention over them adds integers: the query, and the
// weights of a block of positions, are rounded to 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvlens::ops {

// Of one KV head, from position 0 on; head_dim is a multiple of 32, at most q8_0_longest_row.
struct Q8Rows {
  const std::byte* keys;
  const std::byte* values;
  std::size_t head_dim;
};
inline constexpr std::size_t q8_0_longest_row = 512;
// The largest magnitude a block can hold: 127 times the largest half.
inline constexpr float q8_0_largest = 127 * 65504.0f;

// Writes a row's blocks. A block's scale is the least half that is not below max|x| / 127; a value
// is x / scale to the nearest integer. |x| is at most q8_0_largest, row.size() a multiple of 32.
void store_q8_0(std::span<const float> row, std::byte* to) noexcept;

// Scores of every head of the group over positions [begin, end): the scale of q times the sum over
// blocks, ascending, of the key's scale times an exact integer dot. q's integers are at most 32767
// in magnitude and share a scale over head_dim. `out` as in attention_weights; returns how many.
std::uint64_t scores(const Q8Rows& rows, const float* q, std::size_t q_stride, std::size_t group,
                     std::size_t begin, std::size_t end, float scale, float* out,
                     std::size_t out_stride) noexcept;

// out += weights x values over positions [begin, end) of one block of them: a block of columns at a
// time, the products of weights and scales are rounded to 16 bits with a scale of their own, and
// their integer dot with the bytes, which is exact, is added once. Returns the value rows taken,
// once a head.
std::uint64_t mix(const Q8Rows& rows, const float* weights, std::size_t weights_stride,
                  std::size_t group, std::size_t begin, std::size_t end, float* out,
                  std::size_t out_stride) noexcept;

}  // namespace kvlens::ops
