// Attention of the query heads that share one KV head over its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvlens/dtype.h"
#include "kvlens/error.h"

namespace kvlens::ops {

// One KV head's rows from position 0 on, [.., head_dim] each. Their `dtype` is the compute type or,
// for float, bf16 or q8_0. Rows in bf16 give the same bits as their values stored as floats; q8_0
// has an arithmetic of its own (attend_q8_0.h).
struct KeyValueRows {
  DType dtype;
  const std::byte* keys;
  const std::byte* values;
  std::size_t head_dim;
};

// One row of numbers for each query head of a group: its query, its weights or its output.
template <class T>
struct HeadRows {
  T* data;
  std::size_t stride;  // from one head's row to the next one's
  std::size_t n_heads;

  [[nodiscard]] T* row(std::size_t head) const noexcept { return data + head * stride; }
  // The rows of `head` and the heads after it, without the first `offset` numbers of each.
  [[nodiscard]] HeadRows from(std::size_t head, std::size_t offset = 0) const noexcept {
    return {row(head) + offset, stride, n_heads - head};
  }
};

// A half-open range of positions.
struct Positions {
  std::size_t begin;
  std::size_t end;
};

// The first position that a row at `position` attends to: with the `window` last positions, itself
// included, or from 0 on if `window` is 0.
[[nodiscard]] constexpr std::size_t window_begin(std::size_t position,
                                                 std::size_t window) noexcept {
  return window == 0 || position < window ? 0 : position + 1 - window;
}

// Work done by a kernel, counted in its loops.
struct AttendWork {
  std::uint64_t scores = 0;      // query-key dot products
  std::uint64_t mixed_rows = 0;  // value rows multiplied by a weight and added
};

// Attention weights of one query row of each head, indexed by position: the softmax of
// scale * (q . k) over `seen`. Entries before it are set to zero, entries after it stay untouched.
template <class T>
AttendWork attention_weights(const KeyValueRows& rows, const HeadRows<const T>& q,
                             const Positions& seen, T scale, const HeadRows<T>& weights) noexcept;

// Each head's sum of weight * value row over `seen`, in ascending order of positions.
template <class T>
AttendWork attention_mix(const KeyValueRows& rows, const HeadRows<const T>& weights,
                         const Positions& seen, const HeadRows<T>& out) noexcept;

// Query rows at consecutive positions, n_heads heads of a group each: head g of row r is at
// `r * row_stride + g * head_dim` of the queries and of the outputs.
template <class T>
struct QueryBlock {
  const T* q;
  T* out;
  std::size_t row_stride;
  std::size_t n_heads;
  std::size_t first_position;  // of row 0
  std::size_t n_rows;
  std::size_t window;  // as in window_begin
};

// Query rows that pass over the keys together.
inline constexpr std::size_t query_tile_rows = 8;

// Weights and mix of several query rows, blocked over keys, with the bits of row by row.
// `scratch` holds attend_scratch(n_rows, n_heads, first_position + n_rows) values.
template <class T>
AttendWork attend_block(const KeyValueRows& rows, const QueryBlock<T>& block, T scale,
                        std::span<T> scratch) noexcept;
// Errors: size_overflow.
template <class T>
[[nodiscard]] Result<std::size_t> attend_scratch(std::size_t n_rows, std::size_t n_heads,
                                                 std::size_t end);

}  // namespace kvlens::ops
