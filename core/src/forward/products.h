// Products of rows with weight matrices, shared over a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "forward/forward_pass.h"
#include "ops/matrix.h"

namespace kvlens {

// out = x matrix^T, [n_rows, matrix.rows].
template <class T>
struct Product {
  const ops::MatrixView& matrix;
  T* out;
};

// Multiplies the rows x, [n_rows, cols], by matrices that all have `cols` columns: one job for the
// pool. Returns the multiply-adds done.
template <class T>
std::uint64_t multiply_rows(const ForwardPass<T>& pass, const T* x, std::size_t n_rows,
                            std::initializer_list<Product<T>> products);

}  // namespace kvlens
