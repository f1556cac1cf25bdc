#include "ops/blocks.h"
#include "ops/linear_kernels.h"
#include "ops/packing.h"
#include "ops/vector.h"

namespace kvlens::ops {
namespace {

// Calls f(chunk, first column) for the chunks of a row in order.
template <class F>
void for_chunks(const MatrixView& matrix, std::size_t row, F f) noexcept {
  const std::size_t block_values = dtype_info(matrix.dtype).block_values;
  std::byte block[max_block_bytes];
  Chunk chunk;
  for (std::size_t b = 0; b < matrix.cols / block_values; ++b) {
    copy_block(matrix, row, b, block);
    for (std::size_t c = 0; c < block_values / chunk_values; ++c) {
      read_chunk(matrix.dtype, block, c, chunk);
      f(chunk, b * block_values + c * chunk_values);
    }
  }
}

std::int32_t dot(const std::int8_t* a, const std::int8_t* b, std::size_t size) noexcept {
  std::int32_t total = 0;
  for (std::size_t i = 0; i < size; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace

void linear_int8_reference(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                           const Int8Product& product) noexcept {
  const bool halves = scale_span(matrix.dtype) == 16;
  const bool with_min = has_min(matrix.dtype);
  for (std::size_t row = row_begin; row < row_end; ++row) {
    for (std::size_t r = 0; r < product.n_rows; ++r) product.y[r * product.y_stride + row] = 0.0f;
    for_chunks(matrix, row, [&](const Chunk& w, std::size_t column) {
      for (std::size_t r = 0; r < product.n_rows; ++r) {
        const Int8Block& x = product.input[r * product.input_stride + column / int8_block_values];
        float y = product.y[r * product.y_stride + row];
        if (halves) {
          for (std::size_t h = 0; h < 2; ++h) {
            const auto exact = static_cast<float>(dot(w.q + 16 * h, x.value + 16 * h, 16));
            y += exact * (w.scale[h] * x.scale);
          }
          for (std::size_t h = 0; with_min && h < 2; ++h) y += w.min[h] * x.half_sum[h];
        } else {
          y += static_cast<float>(dot(w.q, x.value, 32)) * (w.scale[0] * x.scale);
          if (with_min) y += w.min[0] * x.sum;
        }
        product.y[r * product.y_stride + row] = y;
      }
    });
  }
}

void linear_dequantised(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                        const FloatProduct<double>& product) noexcept {
  const bool with_min = has_min(matrix.dtype);
  // Few rows at a time, so that the lanes of all of them need no memory of unknown size.
  constexpr std::size_t tile = 16;
  for (std::size_t row = row_begin; row < row_end; ++row) {
    for (std::size_t first = 0; first < product.n_rows; first += tile) {
      const std::size_t rows = product.n_rows - first < tile ? product.n_rows - first : tile;
      f64x4 lanes[tile] = {};
      for_chunks(matrix, row, [&](const Chunk& w, std::size_t column) {
        double values[chunk_values];
        for (std::size_t i = 0; i < chunk_values; ++i) {
          const float scaled = w.scale[i / 16] * static_cast<float>(w.q[i]);
          values[i] = with_min ? scaled + w.min[i / 16] : scaled;
        }
        for (std::size_t r = 0; r < rows; ++r) {
          const double* x = product.input + (first + r) * product.input_stride + column;
          for (std::size_t i = 0; i < chunk_values; i += n_lanes) {
            lanes[r] = lanes[r] + load(x + i) * load(values + i);
          }
        }
      });
      for (std::size_t r = 0; r < rows; ++r) {
        product.y[(first + r) * product.y_stride + row] = sum(lanes[r]);
      }
    }
  }
}

}  // namespace kvlens::ops
