#include "ops/linear_int8.h"

namespace kvlens::ops {

void linear_int8_pair(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                      const Int8Product& product) noexcept {
  run_int8_kernels<PairDot>(matrix, row_begin, row_end, product);
}

}  // namespace kvlens::ops
