// The parts of `linear`, for its dispatch and for tests that compare them.
#pragma once

#include <cstddef>

#include "ops/int8_block.h"
#include "ops/matrix.h"

namespace kvlens::ops {

// Rows of the input of one product and where its outputs go.
template <class Input, class Output>
struct Product {
  const Input* input;  // [n_rows, input_stride]
  std::size_t input_stride;
  std::size_t n_rows;
  Output* y;  // [n_rows, y_stride]
  std::size_t y_stride;
};
template <class T>
using FloatProduct = Product<T, T>;
using Int8Product = Product<Int8Block, float>;

// Plain float storage.
template <class T>
void linear_float(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                  const FloatProduct<T>& product) noexcept;
// Blocks as the floats that they stand for.
void linear_dequantised(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                        const FloatProduct<double>& product) noexcept;

// Blocks of either layout against int8 input: the contract of linear.h, word for word. The kernels
// give the same bits; it also serves the rows that no whole packed group covers.
void linear_int8_reference(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                           const Int8Product& product) noexcept;

// Whole packed groups of four rows (row_begin and row_end are multiples of 4), the same bits.
// With 16-bit products, for SIMD128; with four-byte dots, for relaxed SIMD and native code.
void linear_int8_pair(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                      const Int8Product& product) noexcept;
void linear_int8_quad(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                      const Int8Product& product) noexcept;

}  // namespace kvlens::ops
