// Rows of keys and values in Q8_0 blocks: every 32 values become a half (the scale) and 32 signed
// bytes, 34 bytes in all (ggml-common.h of ggml-org/llama.cpp). Attention over them adds integers:
// the query, and the weights of a block of positions, are rounded to 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attend.h"

namespace kvlens::ops {

// One KV head's rows from position 0 on. head_dim is a multiple of 32, at most q8_0_longest_row.
struct Q8Rows {
  const std::byte* keys;
  const std::byte* values;
  std::size_t head_dim;
};
inline constexpr std::size_t q8_0_longest_row = 512;
// The largest magnitude a block can hold: 127 times the largest half.
inline constexpr float q8_0_largest = 127 * 65504.0f;

// Writes the blocks of a row to `to`. The scale of a block is the smallest half that is not below
// max|x| / 127; each value is x / scale rounded to the nearest integer. Every |x| must be at most
// q8_0_largest, and row.size() a multiple of 32.
void store_q8_0(std::span<const float> row, std::byte* to) noexcept;

// Scores of every head of q over the positions `seen`: the scale of q times the sum over blocks,
// ascending, of the key's scale times an exact integer dot product. The integers of q are at most
// 32767 in magnitude and share one scale over head_dim. Returns the number of scores; `out` is
// indexed by position, as in attention_weights.
std::uint64_t scores(const Q8Rows& rows, const HeadRows<const float>& q, const Positions& seen,
                     float scale, const HeadRows<float>& out) noexcept;

// Adds weights x values over the positions `seen`, which lie in one block, to `out`. It goes over
// blocks of columns: the products of weights and value scales are rounded to 16 bits with one
// scale, and their exact integer dot product with the bytes is added once. Returns the number of
// value rows taken, counted once per head.
std::uint64_t mix(const Q8Rows& rows, const HeadRows<const float>& weights, const Positions& seen,
                  const HeadRows<float>& out) noexcept;

}  // namespace kvlens::ops
