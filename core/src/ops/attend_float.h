// Scores and mixes of rows stored as the compute type or as bfloat16.
//
// Loops over keys and values in tiles that fit the registers. That changes no score's or output's
// order of additions: a score is one reduction over head_dim, an output adds its positions in
// ascending order.
#pragma once

#include "ops/attend_tiles.h"
#include "ops/half.h"
#include "ops/vector.h"

namespace kvlens::ops {

// Whether tiles are of several heads and keys. Double is for reference: the size of its code counts
// more than its speed.
template <class T>
constexpr bool wide_tiles = std::is_same_v<T, float>;

// KeyValueRows of what they hold: the compute type, or bfloat16.
template <class S>
struct StoredRows {
  const S* keys;
  const S* values;
  std::size_t head_dim;
};

// Values behind each other.
template <class T, std::size_t n>
struct Vectors {
  static constexpr std::size_t count = n;
  Lanes<T> v[n];
};
template <std::size_t n, class T>
inline Vectors<T, n> load_vectors(const T* from) noexcept {
  Vectors<T, n> vectors;
  for (std::size_t i = 0; i < n; ++i) vectors.v[i] = load(from + i * n_lanes);
  return vectors;
}
// Two at a time, by interleaving with zeros: shifts would compete with additions for their ports.
template <std::size_t n>
inline Vectors<float, n> load_vectors(const BFloat16* from) noexcept {
  Vectors<float, n> vectors;
  constexpr std::size_t n_pairs = n / 2;
  for (std::size_t i = 0; i < n_pairs; ++i) {
    const u16x8 zero = {};
    const auto stored = load_as<u16x8>(from + i * 2 * n_lanes);
    vectors.v[2 * i] =
        std::bit_cast<f32x4>(__builtin_shufflevector(zero, stored, 0, 8, 1, 9, 2, 10, 3, 11));
    vectors.v[2 * i + 1] =
        std::bit_cast<f32x4>(__builtin_shufflevector(zero, stored, 4, 12, 5, 13, 6, 14, 7, 15));
  }
  if constexpr (n % 2 != 0) vectors.v[n - 1] = load(from + (n - 1) * n_lanes);
  return vectors;
}

inline float value_of(BFloat16 stored) noexcept { return to_float(stored); }
template <class T>
T value_of(T stored) noexcept {
  return stored;
}

// Vectors of keys that a tile multiplies at once, and of values that it mixes: as many as registers
// hold beside the sums.
template <class S>
constexpr std::size_t key_vectors = std::is_same_v<S, BFloat16> ? 2 : 1;
template <class S>
constexpr std::size_t value_vectors = std::is_same_v<S, BFloat16> ? 2 : 4;
// Whether values are read once for each head rather than held: bfloat16 would be widened each time.
template <class S>
constexpr bool rereads_values = !std::is_same_v<S, BFloat16>;

// Whether a new page of keys is touched ahead. Pages hold fewer floats: for them that costs more
// than it gives.
template <class S>
constexpr bool touches_pages = sizeof(S) < sizeof(float);

// Scores of `n_heads` heads and `n_keys` positions, `apart` from one another.
template <std::size_t n_heads, std::size_t n_keys, class S, class T>
inline void score_tile(const S* keys, std::size_t apart, std::size_t head_dim, const T* q,
                       std::size_t q_stride, T scale, T* out, std::size_t out_stride) noexcept {
  // All keys at once would not fit the registers beside the sums.
  constexpr bool one_by_one = std::is_same_v<S, float>;
  Lanes<T> products[n_heads][n_keys] = {};
  const auto step = [&](std::size_t d, auto load_lanes) __attribute__((always_inline)) {
    Vectors<T, decltype(load_lanes(q))::count> query[n_heads];
    for (std::size_t g = 0; g < n_heads; ++g) query[g] = load_lanes(q + g * q_stride + d);
    for (std::size_t k = 0; k < n_keys; ++k) {
      auto key = load_lanes(keys + k * apart * head_dim + d);
      for (std::size_t v = 0; v < key.count; ++v) {
        if constexpr (one_by_one) pin(key.v[v]);
        for (std::size_t g = 0; g < n_heads; ++g) {
          products[g][k] = products[g][k] + query[g].v[v] * key.v[v];
          if constexpr (one_by_one) pin(products[g][k]);
        }
      }
    }
  };
  constexpr std::size_t n_vectors = key_vectors<S>;
  std::size_t d = 0;
  KVLENS_NO_UNROLL
  for (; d + n_vectors * n_lanes <= head_dim; d += n_vectors * n_lanes) {
    step(d, [](const auto* from) { return load_vectors<n_vectors>(from); });
  }
  if (n_vectors > 1 && d + n_lanes <= head_dim) {
    step(d, [](const auto* from) { return load_vectors<1>(from); });
    d += n_lanes;
  }
  if (d != head_dim) {
    step(d, [&](const auto* from) { return Vectors<T, 1>{{load_part(from, head_dim - d)}}; });
  }
  for (std::size_t g = 0; g < n_heads; ++g) {
    for (std::size_t k = 0; k < n_keys; ++k) {
      out[g * out_stride + k * apart] = scale * sum(products[g][k]);
    }
  }
}

// Scores of every head of the group over positions [begin, end); returns how many.
template <class S, class T>
[[gnu::noinline]] std::uint64_t scores(const StoredRows<S>& rows, const T* q, std::size_t q_stride,
                                       std::size_t group, std::size_t begin, std::size_t end,
                                       T scale, T* out, std::size_t out_stride) noexcept {
  std::uint64_t n_scores = 0;
  for_head_tiles<wide_tiles<T>>(group, [&](auto width, std::size_t g) {
    n_scores +=
        width() * for_key_tiles<wide_tiles<T> ? keys_per_tile(width()) : 1, touches_pages<S>>(
                      reinterpret_cast<const std::byte*>(rows.keys), rows.head_dim * sizeof(S),
                      begin, end, [&](auto n_keys, std::size_t p, std::size_t apart) {
                        score_tile<width(), n_keys()>(rows.keys + p * rows.head_dim, apart,
                                                      rows.head_dim, q + g * q_stride, q_stride,
                                                      scale, out + g * out_stride + p, out_stride);
                      });
  });
  return n_scores;
}

template <std::size_t n_heads, std::size_t n_vectors, class S, class T>
inline void mix_tile(const S* values, std::size_t head_dim, const T* weights,
                     std::size_t weights_stride, std::size_t n_positions, T* out,
                     std::size_t out_stride) noexcept {
  Lanes<T> total[n_heads][n_vectors];
  for (std::size_t g = 0; g < n_heads; ++g) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      total[g][v] = load(out + g * out_stride + v * n_lanes);
    }
  }
  for (std::size_t p = 0; p < n_positions; ++p, values += head_dim) {
    auto row = load_vectors<n_vectors>(values);
    for (std::size_t g = 0; g < n_heads; ++g) {
      for (std::size_t v = 0; v < n_vectors; ++v) {
        total[g][v] = total[g][v] + splat(weights[g * weights_stride + p]) * row.v[v];
      }
      if constexpr (rereads_values<S>) {
        pin_address(values);
        row = load_vectors<n_vectors>(values);
      }
    }
  }
  for (std::size_t g = 0; g < n_heads; ++g) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      store(out + g * out_stride + v * n_lanes, total[g][v]);
    }
  }
}

// out += weights x values over positions [begin, end) of one block; returns the value rows taken,
// once a head.
template <class S, class T>
[[gnu::noinline]] std::uint64_t mix(const StoredRows<S>& rows, const T* weights,
                                    std::size_t weights_stride, std::size_t group,
                                    std::size_t begin, std::size_t end, T* out,
                                    std::size_t out_stride) noexcept {
  const std::size_t head_dim = rows.head_dim;
  std::uint64_t n_rows = 0;
  for_head_tiles<wide_tiles<T>>(group, [&](auto width, std::size_t g) {
    const S* values = rows.values + begin * head_dim;
    const T* head_weights = weights + g * weights_stride + begin;
    T* head_out = out + g * out_stride;
    const auto tile = [&](auto n_vectors, std::size_t d) {
      mix_tile<width(), n_vectors()>(values + d, head_dim, head_weights, weights_stride,
                                     end - begin, head_out + d, out_stride);
    };
    constexpr std::size_t n_vectors = value_vectors<S>;
    std::size_t d = 0;
    for (; d + n_vectors * n_lanes <= head_dim; d += n_vectors * n_lanes) {
      tile(std::integral_constant<std::size_t, n_vectors>{}, d);
    }
    for (; d + n_lanes <= head_dim; d += n_lanes) {
      tile(std::integral_constant<std::size_t, 1>{}, d);
    }
    KVLENS_NO_UNROLL
    for (; d < head_dim; ++d) {
      KVLENS_NO_UNROLL
      for (std::size_t h = 0; h < width(); ++h) {
        T total = head_out[h * out_stride + d];
        KVLENS_NO_UNROLL
        for (std::size_t p = 0; p < end - begin; ++p) {
          total += head_weights[h * weights_stride + p] * value_of(values[p * head_dim + d]);
        }
        head_out[h * out_stride + d] = total;
      }
    }
    n_rows += width() * (end - begin);
  });
  return n_rows;
}

}  // namespace kvlens::ops
