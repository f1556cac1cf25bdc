// y = x W^T for weights in any storage type.
//
// The numeric contract. An output is a function of its own weight row and input row alone:
// splitting the output rows over threads, batching the input rows, the layout of the weights and
// the target of the build change no bit of it.
//
// Float weights, or blocks with T = double: products in T of the input and the stored value (a
// block's value is the float32 that the format stands for), in four lanes by index mod 4, then
// ((l0 + l1) + (l2 + l3)).
//
// Blocks, T = float: the input is rounded to int8 per 32 values (ops/int8_block.h). Weights are
// scale * q + min with an integer q (ops/blocks.h). The output starts at 0 and takes, for each 32
// values in ascending order, each operation rounded to float:
//   scale over 32 values:  y += float(dot) * (scale * x.scale)
//                          y += min * x.sum                                       [with a min]
//   scale over 16 values:  y += float(dot[h]) * (scale[h] * x.scale)   h = 0, 1
//                          y += min[h] * x.half_sum[h]                 h = 0, 1   [with a min]
// where dot is the exact integer sum of q times the rounded input, below 2^24.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvlens/error.h"
#include "kvlens/memory.h"
#include "ops/int8_block.h"
#include "ops/matrix.h"

namespace kvlens::ops {

// Input rows, with their int8 form where a quantised matrix will want it. Prepared once, used by
// every matrix that reads the same rows.
template <class T>
class LinearInput {
 public:
  // Room for `max_rows` rows of `max_cols`. Errors: size_overflow, out_of_memory.
  [[nodiscard]] static Result<LinearInput> create(std::size_t max_rows, std::size_t max_cols);

  // Refers to `x` ([n_rows, cols], alive until the last `linear`) and, when `quantise` is set and
  // cols is a multiple of 32, makes the int8 form. Allocates nothing.
  void set(const T* x, std::size_t n_rows, std::size_t cols, bool quantise) noexcept;
  // The same in two steps: after `set` without `quantise`, any threads may each make the int8 form
  // of some of the rows.
  void quantise_rows(std::size_t row_begin, std::size_t row_end) noexcept;

  [[nodiscard]] const T* x() const noexcept { return x_; }
  [[nodiscard]] std::size_t n_rows() const noexcept { return n_rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }
  // [n_rows, cols / 32]
  [[nodiscard]] const Int8Block* blocks() const noexcept { return blocks_.data(); }

 private:
  const T* x_ = nullptr;
  std::size_t n_rows_ = 0;
  std::size_t cols_ = 0;
  Buffer<Int8Block> blocks_;  // [max_rows, max_cols / 32]; empty for double
};

// y[r, o] for every input row r and o in [row_begin, row_end); y is [n_rows, matrix.rows].
// A matrix of blocks with T = float reads the int8 form of `input`.
// Returns the multiply-adds done. Splits are best at multiples of `row_granularity`.
template <class T>
std::uint64_t linear(const MatrixView& matrix, const LinearInput<T>& input, std::size_t row_begin,
                     std::size_t row_end, T* y) noexcept;
inline constexpr std::size_t row_granularity = 8;

}  // namespace kvlens::ops
