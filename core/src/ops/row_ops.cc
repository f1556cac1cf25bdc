#include "ops/row_ops.h"

#include <cmath>

#include "ops/elementary.h"
#include "ops/vector.h"

namespace kvlens::ops {
namespace {

f32x4 larger(f32x4 a, f32x4 b) noexcept { return select(a < b, b, a); }
f64x4 larger(f64x4 a, f64x4 b) noexcept {
  return {
      f64x2{a.low[0] < b.low[0] ? b.low[0] : a.low[0], a.low[1] < b.low[1] ? b.low[1] : a.low[1]},
      f64x2{a.high[0] < b.high[0] ? b.high[0] : a.high[0],
            a.high[1] < b.high[1] ? b.high[1] : a.high[1]}};
}

f64x4 to_doubles(f64x4 v) noexcept { return v; }
f64x4 to_doubles(f32x4 v) noexcept {
  return {__builtin_convertvector(__builtin_shufflevector(v, v, 0, 1), f64x2),
          __builtin_convertvector(__builtin_shufflevector(v, v, 2, 3), f64x2)};
}

}  // namespace

template <class T>
T maximum(std::span<const T> x) noexcept {
  T largest = x[0];
  std::size_t i = 0;
  if (x.size() >= n_lanes) {
    Lanes<T> lanes = load(x.data());
    for (i = n_lanes; i + n_lanes <= x.size(); i += n_lanes) {
      lanes = larger(lanes, load(x.data() + i));
    }
    T each[n_lanes];
    store(each, lanes);
    for (const T value : each) {
      // The negation also replaces a NaN that came first.
      if (!(largest >= value)) largest = value;
    }
  }
  KVLENS_NO_UNROLL
  for (; i < x.size(); ++i) {
    if (largest < x[i]) largest = x[i];
  }
  return largest;
}

template <class T>
void rms_norm(std::span<const T> x, std::span<const T> gain, T eps, std::span<T> out) noexcept {
  const std::size_t whole = whole_lanes(x.size());
  const std::size_t part = x.size() - whole;
  Lanes<T> squares = splat(T{0});
  for (std::size_t i = 0; i < whole; i += n_lanes) {
    const Lanes<T> value = load(x.data() + i);
    squares = squares + value * value;
  }
  if (part != 0) {
    const Lanes<T> value = load_part(x.data() + whole, part);
    squares = squares + value * value;
  }
  // The square root is correctly rounded by IEEE 754, so the library's is everyone's.
  const T scale = T{1} / std::sqrt(sum(squares) / static_cast<T>(x.size()) + eps);
  for (std::size_t i = 0; i < whole; i += n_lanes) {
    store(out.data() + i, load(x.data() + i) * splat(scale) * load(gain.data() + i));
  }
  KVLENS_NO_UNROLL
  for (std::size_t i = whole; i < x.size(); ++i) out[i] = x[i] * scale * gain[i];
}

template <class T>
void softmax(std::span<T> x) noexcept {
  const T largest = maximum(std::span<const T>(x));
  const std::size_t whole = whole_lanes(x.size());
  const auto constants = exponential_constants_for<T>();
  Lanes<T> total = splat(T{0});
  for (std::size_t i = 0; i < whole; i += n_lanes) {
    const Lanes<T> value = exponential(load(x.data() + i) - splat(largest), constants);
    store(x.data() + i, value);
    total = total + value;
  }
  if (whole != x.size()) {
    T rest[n_lanes] = {};
    KVLENS_NO_UNROLL
    for (std::size_t i = whole; i < x.size(); ++i) {
      x[i] = rest[i - whole] = exponential(x[i] - largest);
    }
    total = total + load(rest);
  }
  const T inverse = T{1} / sum(total);
  for (std::size_t i = 0; i < whole; i += n_lanes) {
    store(x.data() + i, load(x.data() + i) * splat(inverse));
  }
  KVLENS_NO_UNROLL
  for (std::size_t i = whole; i < x.size(); ++i) x[i] *= inverse;
}

template <class T>
double exponential_sum(std::span<const T> x) noexcept {
  const T largest = maximum(x);
  const std::size_t whole = whole_lanes(x.size());
  const auto constants = exponential_constants_for<T>();
  f64x4 total = splat(0.0);
  for (std::size_t i = 0; i < whole; i += n_lanes) {
    total = total + to_doubles(exponential(load(x.data() + i) - splat(largest), constants));
  }
  double rest = 0;
  KVLENS_NO_UNROLL
  for (std::size_t i = whole; i < x.size(); ++i) {
    rest += static_cast<double>(exponential(x[i] - largest));
  }
  return sum(total) + rest;
}

void exponentials(std::span<double> x) noexcept {
  const std::size_t whole = whole_lanes(x.size());
  const auto constants = exponential_constants_for<double>();
  for (std::size_t i = 0; i < whole; i += n_lanes) {
    store(x.data() + i, exponential(load(x.data() + i), constants));
  }
  KVLENS_NO_UNROLL
  for (std::size_t i = whole; i < x.size(); ++i) x[i] = exponential(x[i]);
}

template <class T>
void swiglu(std::span<const T> gate, std::span<const T> up, std::span<T> out) noexcept {
  const std::size_t whole = whole_lanes(gate.size());
  const auto constants = exponential_constants_for<T>();
  for (std::size_t i = 0; i < whole; i += n_lanes) {
    const Lanes<T> g = load(gate.data() + i);
    const Lanes<T> silu = g / (splat(T{1}) + exponential(splat(T{0}) - g, constants));
    store(out.data() + i, silu * load(up.data() + i));
  }
  KVLENS_NO_UNROLL
  for (std::size_t i = whole; i < gate.size(); ++i) {
    out[i] = gate[i] / (T{1} + exponential(T{0} - gate[i])) * up[i];
  }
}

template <class T>
void add(std::span<T> x, std::span<const T> y) noexcept {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

template <class T>
std::optional<std::size_t> first_non_finite(std::span<const T> x) noexcept {
  // 0 * x is 0 for a finite x and NaN for any other.
  const std::size_t whole = whole_lanes(x.size());
  Lanes<T> zeros = splat(T{0});
  for (std::size_t i = 0; i < whole; i += n_lanes) {
    zeros = zeros + load(x.data() + i) * splat(T{0});
  }
  T rest = sum(zeros);
  KVLENS_NO_UNROLL
  for (std::size_t i = whole; i < x.size(); ++i) rest += x[i] * T{0};
  if (rest == T{0}) return std::nullopt;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] * T{0} == T{0})) return i;
  }
  return std::nullopt;
}

template void rms_norm(std::span<const float>, std::span<const float>, float,
                       std::span<float>) noexcept;
template void rms_norm(std::span<const double>, std::span<const double>, double,
                       std::span<double>) noexcept;
template float maximum(std::span<const float>) noexcept;
template double maximum(std::span<const double>) noexcept;
template double exponential_sum(std::span<const float>) noexcept;
template double exponential_sum(std::span<const double>) noexcept;
template void softmax(std::span<float>) noexcept;
template void softmax(std::span<double>) noexcept;
template void swiglu(std::span<const float>, std::span<const float>, std::span<float>) noexcept;
template void swiglu(std::span<const double>, std::span<const double>, std::span<double>) noexcept;
template void add(std::span<float>, std::span<const float>) noexcept;
template void add(std::span<double>, std::span<const double>) noexcept;
template std::optional<std::size_t> first_non_finite(std::span<const float>) noexcept;
template std::optional<std::size_t> first_non_finite(std::span<const double>) noexcept;

}  // namespace kvlens::ops
