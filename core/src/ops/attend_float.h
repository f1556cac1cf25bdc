// Scores and mixes of rows stored as the compute type or as bfloat16.
//
// The loops go over keys and values in tiles that fit the registers. This does not change the order
// of additions: a score is one reduction over head_dim, and an output adds its positions in
// ascending order.
#pragma once

#include "ops/attend.h"
#include "ops/attend_tiles.h"
#include "ops/half.h"
#include "ops/vector.h"

namespace kvlens::ops {

// Whether a tile spans several heads and keys. Double is for reference, so small code matters more
// than speed.
template <class T>
constexpr bool wide_tiles = std::is_same_v<T, float>;

// KeyValueRows whose values are S: the compute type, or bfloat16.
template <class S>
struct StoredRows {
  const S* keys;
  const S* values;
  std::size_t head_dim;
};

// Consecutive values.
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
// Two vectors at a time, by interleaving with zeros: shifts would compete with additions for ports.
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

// The number of key vectors that a tile multiplies at once, and of value vectors that it mixes: as
// many as fit the registers beside the sums.
template <class S>
constexpr std::size_t key_vectors = std::is_same_v<S, BFloat16> ? 2 : 1;
template <class S>
constexpr std::size_t value_vectors = std::is_same_v<S, BFloat16> ? 2 : 4;
// Whether values are read again for each head, not held. For bfloat16 each read would widen them.
template <class S>
constexpr bool rereads_values = !std::is_same_v<S, BFloat16>;

// Whether a new page of keys is touched ahead. A page holds fewer floats than smaller types, and
// for floats the touch costs more than it saves.
template <class S>
constexpr bool touches_pages = sizeof(S) < sizeof(float);

// Scores of `n_heads` heads and `n_keys` positions, `apart` from one another.
template <std::size_t n_heads, std::size_t n_keys, class S, class T>
inline void score_tile(const S* keys, std::size_t apart, std::size_t head_dim,
                       const HeadRows<const T>& q, T scale, const HeadRows<T>& out) noexcept {
  // All float keys at once would not fit the registers beside the sums.
  constexpr bool one_by_one = std::is_same_v<S, float>;
  Lanes<T> products[n_heads][n_keys] = {};
  const auto step = [&](std::size_t d, auto load_lanes) __attribute__((always_inline)) {
    Vectors<T, decltype(load_lanes(q.data))::count> query[n_heads];
    for (std::size_t g = 0; g < n_heads; ++g) query[g] = load_lanes(q.row(g) + d);
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
      out.row(g)[k * apart] = scale * sum(products[g][k]);
    }
  }
}

// Scores of every head of q over the positions `seen`; returns how many there are.
template <class S, class T>
[[gnu::noinline]] std::uint64_t scores(const StoredRows<S>& rows, const HeadRows<const T>& q,
                                       const Positions& seen, T scale,
                                       const HeadRows<T>& out) noexcept {
  std::uint64_t n_scores = 0;
  for_head_tiles<wide_tiles<T>>(q.n_heads, [&](auto width, std::size_t g) {
    n_scores +=
        width() * for_key_tiles<wide_tiles<T> ? keys_per_tile(width()) : 1, touches_pages<S>>(
                      reinterpret_cast<const std::byte*>(rows.keys), rows.head_dim * sizeof(S),
                      seen, [&](auto n_keys, std::size_t p, std::size_t apart) {
                        score_tile<width(), n_keys()>(rows.keys + p * rows.head_dim, apart,
                                                      rows.head_dim, q.from(g), scale,
                                                      out.from(g, p));
                      });
  });
  return n_scores;
}

template <std::size_t n_heads, std::size_t n_vectors, class S, class T>
inline void mix_tile(const S* values, std::size_t head_dim, const HeadRows<const T>& weights,
                     std::size_t n_positions, const HeadRows<T>& out) noexcept {
  Lanes<T> total[n_heads][n_vectors];
  for (std::size_t g = 0; g < n_heads; ++g) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      total[g][v] = load(out.row(g) + v * n_lanes);
    }
  }
  for (std::size_t p = 0; p < n_positions; ++p, values += head_dim) {
    auto row = load_vectors<n_vectors>(values);
    for (std::size_t g = 0; g < n_heads; ++g) {
      for (std::size_t v = 0; v < n_vectors; ++v) {
        total[g][v] = total[g][v] + splat(weights.row(g)[p]) * row.v[v];
      }
      if constexpr (rereads_values<S>) {
        pin_address(values);
        row = load_vectors<n_vectors>(values);
      }
    }
  }
  for (std::size_t g = 0; g < n_heads; ++g) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      store(out.row(g) + v * n_lanes, total[g][v]);
    }
  }
}

// Adds weights x values over the positions `seen`, which lie in one block, to `out`; returns the
// number of value rows taken, counted once per head.
template <class S, class T>
[[gnu::noinline]] std::uint64_t mix(const StoredRows<S>& rows, const HeadRows<const T>& weights,
                                    const Positions& seen, const HeadRows<T>& out) noexcept {
  const std::size_t head_dim = rows.head_dim;
  const std::size_t n_positions = seen.end - seen.begin;
  const S* values = rows.values + seen.begin * head_dim;
  std::uint64_t n_rows = 0;
  for_head_tiles<wide_tiles<T>>(out.n_heads, [&](auto width, std::size_t g) {
    const auto tile = [&](auto n_vectors, std::size_t d) {
      mix_tile<width(), n_vectors()>(values + d, head_dim, weights.from(g, seen.begin), n_positions,
                                     out.from(g, d));
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
        const T* head_weights = weights.row(g + h) + seen.begin;
        T total = out.row(g + h)[d];
        KVLENS_NO_UNROLL
        for (std::size_t p = 0; p < n_positions; ++p) {
          total += head_weights[p] * value_of(values[p * head_dim + d]);
        }
        out.row(g + h)[d] = total;
      }
    }
    n_rows += width() * n_positions;
  });
  return n_rows;
}

}  // namespace kvlens::ops
