// A weight matrix as the kernels see it.
#pragma once

#include <cstddef>

#include "kvlens/dtype.h"
#include "kvlens/layout.h"

namespace kvlens::ops {

struct MatrixView {
  DType dtype;
  Layout layout;
  std::size_t rows;  // outputs
  std::size_t cols;  // inputs; a whole number of blocks
  const std::byte* data;
};

}  // namespace kvlens::ops
