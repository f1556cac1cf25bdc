// Attention of the query heads that share one KV head over its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvlens/dtype.h"

namespace kvlens::ops {

// One KV head's rows from position 0 on, [.., head_dim] each. `dtype` is the compute type's own or,
// for float, bf16, with which what is computed is the same as with the stored values as floats, to
// the bit, or q8_0 (see attend_q8_0.h).
struct KeyValueRows {
  DType dtype;
  const std::byte* keys;
  const std::byte* values;
  std::size_t head_dim;
};

// What a kernel did, counted in its loops.
struct AttendWork {
  std::uint64_t scores = 0;      // query-key dot products
  std::uint64_t mixed_rows = 0;  // value rows multiplied by a weight and added
};

// Weights of one query row of every head of the group: softmax over positions [begin, end) of
// scale * (q . k). q is head g at `q + g * q_stride`, its weights go to `weights + g *
// weights_stride`, indexed by position; entries [0, begin) are set to zero.
template <class T>
AttendWork attention_weights(const KeyValueRows& rows, const T* q, std::size_t q_stride,
                             std::size_t group, std::size_t begin, std::size_t end, T scale,
                             T* weights, std::size_t weights_stride) noexcept;

// out[g] = sum over positions [begin, end), ascending, of weights[g][position] * value row.
template <class T>
AttendWork attention_mix(const KeyValueRows& rows, const T* weights, std::size_t weights_stride,
                         std::size_t group, std::size_t begin, std::size_t end, T* out,
                         std::size_t out_stride) noexcept;

// Both for several query rows at once, blocked over keys, the same bits as row by row. Row r of the
// block stands at position first_position + r and sees [window_begin, first_position + r];
// window 0 is no window. q and out: row r, head g at `r * row_stride + g * head_dim`.
// `scratch` holds attend_scratch(n_rows, group, end) values.
template <class T>
AttendWork attend_block(const KeyValueRows& rows, const T* q, std::size_t row_stride,
                        std::size_t group, std::size_t first_position, std::size_t n_rows,
                        std::size_t window, T scale, std::span<T> scratch, T* out) noexcept;
[[nodiscard]] std::size_t attend_scratch(std::size_t n_rows, std::size_t group,
                                         std::size_t end) noexcept;

}  // namespace kvlens::ops
