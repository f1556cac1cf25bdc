// Everything a forward pass computes into, allocated before it starts: a call that has begun cannot
// run out of memory.
#pragma once

#include <cstddef>

#include "kvlens/config.h"
#include "kvlens/memory.h"
#include "kvlens/thread_pool.h"
#include "ops/linear.h"

namespace kvlens {

// Consecutive positions that advance through a layer together.
struct RowRange {
  std::size_t first_position;
  std::size_t n_rows;

  [[nodiscard]] std::size_t end() const noexcept { return first_position + n_rows; }
};

template <class T>
struct Workspace {
  Buffer<T> residual;  // [max_rows, d_model]
  Buffer<T> normed;    // [max_rows, d_model]
  Buffer<T> branch;    // [max_rows, d_model], what a block adds to the residual stream
  Buffer<T> q;         // [max_rows, n_heads, head_dim]
  Buffer<T> k;         // [max_rows, n_kv_heads, head_dim]
  Buffer<T> v;         // [max_rows, n_kv_heads, head_dim]
  Buffer<T> heads;     // [max_rows, n_heads, head_dim]
  Buffer<T> weights;   // [n_heads, max_len], of one row, where a tap looks at them
  Buffer<T> gate;      // [max_rows, d_ff]
  Buffer<T> up;        // [max_rows, d_ff]
  Buffer<T> scratch;   // [n_threads, scratch_per_thread] for attention
  std::size_t scratch_per_thread = 0;
  ops::LinearInput<T> input;

  // For passes of at most `max_rows` rows over at most `max_len` positions.
  // Errors: size_overflow, out_of_memory.
  [[nodiscard]] static Result<Workspace> create(const Config& config, std::size_t max_rows,
                                                std::size_t max_len, std::size_t n_threads);
};

extern template struct Workspace<float>;
extern template struct Workspace<double>;

}  // namespace kvlens
