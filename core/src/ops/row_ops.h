// Operations on rows of plain floats. Each result depends on its own row alone; every reduction
// adds four lanes by index mod 4 and then ((l0 + l1) + (l2 + l3)).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace kvlens::ops {

// out = x * (1 / sqrt(mean(x^2) + eps)) * gain (Zhang and Sennrich 2019, arXiv:1910.07467).
// All spans have one length; `out` may be `x`.
template <class T>
void rms_norm(std::span<const T> x, std::span<const T> gain, T eps, std::span<T> out) noexcept;

// x = exp(x - max(x)) * (1 / sum), in place, [1..]. NaN in gives NaN out.
template <class T>
void softmax(std::span<T> x) noexcept;

// out = silu(gate) * up, silu(g) = g / (1 + exp(-g)) (Shazeer 2020, arXiv:2002.05202). May be in
// place.
template <class T>
void swiglu(std::span<const T> gate, std::span<const T> up, std::span<T> out) noexcept;

// x += y.
template <class T>
void add(std::span<T> x, std::span<const T> y) noexcept;

// The largest element, whatever the order; NaNs are passed over. x is not empty.
template <class T>
[[nodiscard]] T maximum(std::span<const T> x) noexcept;

// Sum of exp(x - max(x)): exponentials of T, added in double.
template <class T>
[[nodiscard]] double exponential_sum(std::span<const T> x) noexcept;

// x = exp(x).
void exponentials(std::span<double> x) noexcept;

// Index of the first NaN or infinity.
template <class T>
[[nodiscard]] std::optional<std::size_t> first_non_finite(std::span<const T> x) noexcept;

}  // namespace kvlens::ops
