#include "ops/linear.h"

#include <algorithm>
#include <type_traits>

#include "base/try.h"
#include "ops/linear_kernels.h"
#include "ops/packing.h"

namespace kvlens::ops {
namespace {

#if defined(__wasm__) && !defined(__wasm_relaxed_simd__)
constexpr auto linear_int8_packed = linear_int8_pair;
#else
constexpr auto linear_int8_packed = linear_int8_quad;
#endif

// Whole packed groups by the kernels, the rows around them by the reference.
void linear_int8(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                 const Int8Product& product) noexcept {
  const std::size_t packed_end = matrix.layout == Layout::packed ? whole_groups(matrix.rows) : 0;
  const std::size_t first = std::min(row_end, whole_groups(row_begin + packed_rows - 1));
  const std::size_t last = std::max(first, whole_groups(std::min(row_end, packed_end)));
  linear_int8_reference(matrix, row_begin, first, product);
  linear_int8_packed(matrix, first, last, product);
  linear_int8_reference(matrix, last, row_end, product);
}

}  // namespace

template <class T>
Result<LinearInput<T>> LinearInput<T>::create(std::size_t max_rows, std::size_t max_cols) {
  LinearInput input;
  if constexpr (std::is_same_v<T, float>) {
    KVLENS_TRY(input.blocks_,
               Buffer<Int8Block>::uninitialised({max_rows, max_cols / int8_block_values}));
  }
  return input;
}

template <class T>
void LinearInput<T>::set(const T* x, std::size_t n_rows, std::size_t cols, bool quantise) noexcept {
  x_ = x;
  n_rows_ = n_rows;
  cols_ = cols;
  if (quantise) quantise_rows(0, n_rows);
}

template <class T>
void LinearInput<T>::quantise_rows([[maybe_unused]] std::size_t row_begin,
                                   [[maybe_unused]] std::size_t row_end) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    if (cols_ % int8_block_values != 0) return;
    const std::size_t blocks_per_row = cols_ / int8_block_values;
    for (std::size_t b = row_begin * blocks_per_row; b < row_end * blocks_per_row; ++b) {
      quantise(x_ + b * int8_block_values, blocks_[b]);
    }
  }
}

template <class T>
std::uint64_t linear(const MatrixView& matrix, const LinearInput<T>& input, std::size_t row_begin,
                     std::size_t row_end, T* y) noexcept {
  const FloatProduct<T> product{input.x(), input.cols(), input.n_rows(), y, matrix.rows};
  if (!is_quantised(matrix.dtype)) {
    linear_float(matrix, row_begin, row_end, product);
  } else if constexpr (std::is_same_v<T, double>) {
    linear_dequantised(matrix, row_begin, row_end, product);
  } else {
    linear_int8(matrix, row_begin, row_end,
                {input.blocks(), input.cols() / int8_block_values, input.n_rows(), y, matrix.rows});
  }
  return std::uint64_t{input.n_rows()} * (row_end - row_begin) * matrix.cols;
}

template class LinearInput<float>;
template class LinearInput<double>;
template std::uint64_t linear(const MatrixView&, const LinearInput<float>&, std::size_t,
                              std::size_t, float*) noexcept;
template std::uint64_t linear(const MatrixView&, const LinearInput<double>&, std::size_t,
                              std::size_t, double*) noexcept;

}  // namespace kvlens::ops
