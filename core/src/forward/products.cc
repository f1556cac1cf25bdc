#include "forward/products.h"

#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "ops/linear.h"

namespace kvlens {
namespace {

// Output rows that stay together. A product with several input rows unpacks this many at once.
constexpr std::size_t rows_per_unit = 4 * ops::row_granularity;

std::size_t units_of(const ops::MatrixView& matrix) {
  return (matrix.rows + rows_per_unit - 1) / rows_per_unit;
}

}  // namespace

template <class T>
std::uint64_t multiply_rows(const ForwardPass<T>& pass, const T* x, std::size_t n_rows,
                            std::initializer_list<Product<T>> products) {
  const std::size_t cols = products.begin()->matrix.cols;
  ops::LinearInput<T>& input = pass.workspace.input;
  input.set(x, n_rows, cols, false);
  const auto quantised = [](const Product<T>& each) { return is_quantised(each.matrix.dtype); };
  if (std::ranges::any_of(products, quantised)) {
    run_rows(pass.pool, n_rows, cols,
             [&](std::size_t begin, std::size_t end) { input.quantise_rows(begin, end); });
  }

  std::size_t n_units = 0;
  for (const Product<T>& each : products) n_units += units_of(each.matrix);
  const std::uint64_t estimate = std::uint64_t{n_rows} * n_units * rows_per_unit * cols;
  std::atomic<std::uint64_t> multiply_adds = 0;
  run_ranges(pass.pool, n_units, 1, estimate, [&](const IndexRange& units) {
    std::size_t first = 0;  // unit of a matrix, counted over all
    for (const Product<T>& each : products) {
      const std::size_t end = first + units_of(each.matrix);
      if (units.begin < end && units.end > first) {
        const std::size_t row_begin = (std::max(units.begin, first) - first) * rows_per_unit;
        const std::size_t row_end = (std::min(units.end, end) - first) * rows_per_unit;
        multiply_adds += ops::linear(each.matrix, input, row_begin,
                                     std::min(row_end, each.matrix.rows), each.out);
      }
      first = end;
    }
  });
  return multiply_adds;
}

template std::uint64_t multiply_rows(const ForwardPass<float>&, const float*, std::size_t,
                                     std::initializer_list<Product<float>>);
template std::uint64_t multiply_rows(const ForwardPass<double>&, const double*, std::size_t,
                                     std::initializer_list<Product<double>>);

}  // namespace kvlens
