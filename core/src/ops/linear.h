// y = x W^T for weights in any storage type.
//
// Float weights: products in T (weights converted on the fly), each output reduced in four lanes by
// index mod 4, then ((l0 + l1) + (l2 + l3)).
// Blocks, T = float: the input is rounded to int8 per 32 values (scale = max|x| / 127, to nearest, ties
// away from zero); dots are exact integers; each block adds float(dot) * (weight scale * input scale),
// and where the format has minima its min term, in block order.
// Blocks, T = double: the dequantised row, as float weights.
// An output depends on its own weight row and input row alone, so splitting the output rows over
// threads or batching the input rows changes no bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvlens/error.h"
#include "kvlens/memory.h"
#include "ops/matrix.h"

namespace kvlens::ops {

// Input rows, with their int8 form where a quantised matrix will want it. Prepared once, used by every
// matrix that reads the same rows.
template <class T>
class LinearInput {
 public:
  // Room for `max_rows` rows of `max_cols`. Errors: size_overflow, out_of_memory.
  [[nodiscard]] static Result<LinearInput> create(std::size_t max_rows, std::size_t max_cols);

  // Refers to `x` ([n_rows, cols], alive until the last `linear`) and, when `quantise` is set and
  // cols is a multiple of 32, makes the int8 form. Allocates nothing.
  void set(const T* x, std::size_t n_rows, std::size_t cols, bool quantise) noexcept;

  [[nodiscard]] const T* x() const noexcept { return x_; }
  [[nodiscard]] std::size_t n_rows() const noexcept { return n_rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }

 private:
  const T* x_ = nullptr;
  std::size_t n_rows_ = 0;
  std::size_t cols_ = 0;
  // (int8 form: members of the kernels' choosing)
};

// y[r, o] for every input row r and o in [row_begin, row_end); y is [n_rows, matrix.rows].
// Returns the multiply-adds done. Splits are best at multiples of `row_granularity`.
template <class T>
std::uint64_t linear(const MatrixView& matrix, const LinearInput<T>& input, std::size_t row_begin,
                     std::size_t row_end, T* y) noexcept;
inline constexpr std::size_t row_granularity = 8;

}  // namespace kvlens::ops
