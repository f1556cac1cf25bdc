#include <algorithm>

#include "ops/half.h"
#include "ops/linear_kernels.h"
#include "ops/vector.h"

namespace kvlens::ops {
namespace {

// Four stored values in the compute type. An object, since a conversion has constants to keep at
// hand.
template <class T, class W>
struct WeightLoader {
  Lanes<T> operator()(const W* from) const noexcept {
    if constexpr (std::is_same_v<T, W>) {
      return load(from);
    } else if constexpr (std::is_same_v<T, float> && std::is_same_v<W, Half>) {
      return load_halves(from, constants);
    } else if constexpr (std::is_same_v<T, float> && std::is_same_v<W, BFloat16>) {
      return load_bfloats(from);
    } else {
      T values[n_lanes];
      for (std::size_t i = 0; i < n_lanes; ++i) {
        if constexpr (std::is_floating_point_v<W>) {
          values[i] = static_cast<T>(from[i]);
        } else {
          values[i] = static_cast<T>(to_float(from[i]));
        }
      }
      return load(values);
    }
  }
  // The first `count` < 4; the others are zero. Rare, so a function of its own.
  [[gnu::noinline]] Lanes<T> part(const W* from, std::size_t count) const noexcept {
    W values[n_lanes] = {};
    std::copy_n(from, count, values);
    return (*this)(values);
  }

  HalfConstants constants = in_register(half_constants);
};

// n_outputs weight rows times n_inputs input rows: enough independent sums to hide the latency of
// an addition, few enough for the registers.
template <std::size_t n_outputs, std::size_t n_inputs, class T, class W>
inline void tile(const WeightLoader<T, W>& load_weights, const W* weights, std::size_t cols,
                 const T* input, std::size_t input_stride, T* y, std::size_t y_stride) noexcept {
  Lanes<T> total[n_outputs][n_inputs] = {};
  const auto step = [&](std::size_t c, const auto& load_w, auto load_x) {
    Lanes<T> w[n_outputs];
    for (std::size_t o = 0; o < n_outputs; ++o) w[o] = load_w(weights + o * cols + c);
    for (std::size_t r = 0; r < n_inputs; ++r) {
      const Lanes<T> x = load_x(input + r * input_stride + c);
      for (std::size_t o = 0; o < n_outputs; ++o) total[o][r] = total[o][r] + x * w[o];
    }
  };
  const std::size_t whole = whole_lanes(cols);
  for (std::size_t c = 0; c < whole; c += n_lanes) {
    step(c, load_weights, [](const T* x) { return load(x); });
  }
  if (const std::size_t part = cols - whole; part != 0) {
    step(
        whole, [&](const W* w) { return load_weights.part(w, part); },
        [part](const T* x) { return load_part(x, part); });
  }
  for (std::size_t r = 0; r < n_inputs; ++r) {
    if constexpr (n_outputs == 4) {
      store(y + r * y_stride, sums(total[0][r], total[1][r], total[2][r], total[3][r]));
    } else {
      for (std::size_t o = 0; o < n_outputs; ++o) y[r * y_stride + o] = sum(total[o][r]);
    }
  }
}

template <std::size_t n_outputs, class T, class W>
void for_input_rows(const WeightLoader<T, W>& load_weights, const W* weights, std::size_t cols,
                    const FloatProduct<T>& p, T* y) noexcept {
  std::size_t r = 0;
  for (; r + 3 <= p.n_rows; r += 3) {
    tile<n_outputs, 3>(load_weights, weights, cols, p.input + r * p.input_stride, p.input_stride,
                       y + r * p.y_stride, p.y_stride);
  }
  for (; r < p.n_rows; ++r) {
    tile<n_outputs, 1>(load_weights, weights, cols, p.input + r * p.input_stride, p.input_stride,
                       y + r * p.y_stride, p.y_stride);
  }
}

template <class T, class W>
void multiply(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
              const FloatProduct<T>& product) noexcept {
  const W* weights = reinterpret_cast<const W*>(matrix.data);
  const WeightLoader<T, W> load_weights;
  std::size_t row = row_begin;
  for (; row + 4 <= row_end; row += 4) {
    for_input_rows<4>(load_weights, weights + row * matrix.cols, matrix.cols, product,
                      product.y + row);
  }
  for (; row < row_end; ++row) {
    for_input_rows<1>(load_weights, weights + row * matrix.cols, matrix.cols, product,
                      product.y + row);
  }
}

}  // namespace

template <class T>
void linear_float(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                  const FloatProduct<T>& product) noexcept {
  if (matrix.dtype == DType::f64) multiply<T, double>(matrix, row_begin, row_end, product);
  if (matrix.dtype == DType::f32) multiply<T, float>(matrix, row_begin, row_end, product);
  if (matrix.dtype == DType::f16) multiply<T, Half>(matrix, row_begin, row_end, product);
  if (matrix.dtype == DType::bf16) multiply<T, BFloat16>(matrix, row_begin, row_end, product);
}

template void linear_float(const MatrixView&, std::size_t, std::size_t,
                           const FloatProduct<float>&) noexcept;
template void linear_float(const MatrixView&, std::size_t, std::size_t,
                           const FloatProduct<double>&) noexcept;

}  // namespace kvlens::ops
