// Loops over keys and values in tiles that fit the registers, over blocks of positions that fit the
// first-level cache. Neither changes a score's or an output's order of additions: a score is one
// reduction over head_dim, an output adds its positions in ascending order.
#include "ops/attend.h"

#include <algorithm>

#include "ops/half.h"
#include "ops/row_ops.h"
#include "ops/vector.h"

namespace kvlens::ops {
namespace {

constexpr std::size_t position_block = 64;
constexpr std::size_t row_tile = 8;
// Columns of values that a tile mixes: a cache line of floats.
constexpr std::size_t tile_columns = 16;
constexpr std::size_t page_bytes = 4096;

// KeyValueRows of what they hold: the compute type, or bfloat16.
template <class S>
struct StoredRows {
  const S* keys;
  const S* values;
  std::size_t head_dim;
};

// f(rows) as what they hold.
template <class T, class F>
AttendWork with_stored(const KeyValueRows& rows, F f) noexcept {
  const auto as = [&]<class S>(const S*) {
    return f(StoredRows<S>{reinterpret_cast<const S*>(rows.keys),
                           reinterpret_cast<const S*>(rows.values), rows.head_dim});
  };
  if constexpr (std::is_same_v<T, float>) {
    if (rows.dtype == DType::bf16) return as(static_cast<const BFloat16*>(nullptr));
  }
  return as(static_cast<const T*>(nullptr));
}

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

// Values to be used next: a tile that mixes others reads a cache line of them at each of its
// positions, so that they come from memory meanwhile. The tiles of all columns together touch every
// line of a block, four distant ones in turn (see linear_int8.h on reading at several places).
template <class S>
struct Ahead {
  const S* from;
  std::size_t quarter;  // values from one of the four places to the next
  std::size_t line;     // and from a line to the next there; both 0: nothing is to come

  [[nodiscard]] const S* at(std::size_t p) const noexcept {
    return from + p % 4 * quarter + p / 4 * line;
  }
};
constexpr std::size_t lines_a_tile = position_block / 4;
// With half the lines to fetch in the same time the machine's own prefetches do better alone.
template <class S>
constexpr bool touches_ahead = sizeof(S) >= sizeof(float);

// Calls f with a compile-time tile width of at most 3 until `count` is used up: f(width, offset).
template <class F>
void for_head_tiles(std::size_t count, F f) noexcept {
  std::size_t offset = 0;
  while (offset < count) {
    const std::size_t rest = count - offset;
    if (rest == 1) {
      f(std::integral_constant<std::size_t, 1>{}, offset);
      offset += 1;
    } else if (rest == 2 || rest == 4) {
      f(std::integral_constant<std::size_t, 2>{}, offset);
      offset += 2;
    } else {
      f(std::integral_constant<std::size_t, 3>{}, offset);
      offset += 3;
    }
  }
}

// Scores of `n_heads` heads and `n_keys` positions, `apart` from one another.
template <std::size_t n_heads, std::size_t n_keys, class S, class T>
inline void score_tile(const S* keys, std::size_t apart, std::size_t head_dim, const T* q,
                       std::size_t q_stride, T scale, T* out, std::size_t out_stride) noexcept {
  Lanes<T> products[n_heads][n_keys] = {};
  const auto step = [&](std::size_t d, auto load_lanes) {
    Vectors<T, decltype(load_lanes(q))::count> query[n_heads];
    for (std::size_t g = 0; g < n_heads; ++g) query[g] = load_lanes(q + g * q_stride + d);
    for (std::size_t k = 0; k < n_keys; ++k) {
      const auto key = load_lanes(keys + k * apart * head_dim + d);
      for (std::size_t v = 0; v < key.count; ++v) {
        for (std::size_t g = 0; g < n_heads; ++g) {
          products[g][k] = products[g][k] + query[g].v[v] * key.v[v];
        }
      }
    }
  };
  std::size_t d = 0;
  for (; d + 2 * n_lanes <= head_dim; d += 2 * n_lanes) {
    step(d, [](const auto* from) { return load_vectors<2>(from); });
  }
  if (d + n_lanes <= head_dim) {
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

template <class S>
constexpr std::size_t rows_a_page(std::size_t head_dim) noexcept {
  return std::max<std::size_t>(1, page_bytes / (head_dim * sizeof(S)));
}
// How far the keys of a tile lie from one another: a number of pages where there are enough.
template <class S>
constexpr std::size_t keys_apart(std::size_t furthest, std::size_t head_dim) noexcept {
  const std::size_t page = rows_a_page<S>(head_dim);
  return furthest < 4 * page ? furthest : furthest / page * page;
}

// Reads a byte at each of `n` places, `apart` values from one another.
template <std::size_t n, class S>
inline void touch(const S* from, std::size_t apart) noexcept {
  unsigned touched = 0;
  for (std::size_t i = 0; i < n; ++i) touched |= load_as<std::uint8_t>(from + i * apart);
  keep(touched);
}

// Scores of every head of the group over positions [begin, end); returns how many. A tile's keys
// are as far apart as they can be (see linear_int8.h on reading at several places), and come to a
// new page of memory all at once, which has been touched a page before: the waits for its address
// and its first line overlap.
template <class S, class T>
std::uint64_t scores(const StoredRows<S>& rows, const T* q, std::size_t q_stride, std::size_t group,
                     std::size_t begin, std::size_t end, T scale, T* out,
                     std::size_t out_stride) noexcept {
  std::uint64_t n_scores = 0;
  for_head_tiles(group, [&](auto width, std::size_t g) {
    // So many sums as registers hold beside what they read.
    constexpr std::size_t n_keys = width() == 3 ? 3 : 4;
    const std::size_t apart = keys_apart<S>((end - begin) / n_keys, rows.head_dim);
    const std::size_t page = rows_a_page<S>(rows.head_dim);
    const T* head_q = q + g * q_stride;
    T* head_out = out + g * out_stride;
    std::size_t p = begin;
    while (p < begin + apart) {
      const std::size_t page_end = std::min(begin + apart, p + page);
      if (page_end < begin + apart) {
        touch<n_keys>(rows.keys + page_end * rows.head_dim, apart * rows.head_dim);
      }
      for (; p < page_end; ++p) {
        score_tile<width(), n_keys>(rows.keys + p * rows.head_dim, apart, rows.head_dim, head_q,
                                    q_stride, scale, head_out + p, out_stride);
      }
    }
    for (p += (n_keys - 1) * apart; p < end; ++p) {
      score_tile<width(), 1>(rows.keys + p * rows.head_dim, 0, rows.head_dim, head_q, q_stride,
                             scale, head_out + p, out_stride);
    }
    n_scores += width() * (p - begin);
  });
  return n_scores;
}

template <std::size_t n_heads, std::size_t n_vectors, class S, class T>
inline void mix_tile(const S* values, std::size_t head_dim, const T* weights,
                     std::size_t weights_stride, std::size_t n_positions, T* out,
                     std::size_t out_stride, const Ahead<S>& ahead) noexcept {
  Lanes<T> total[n_heads][n_vectors];
  for (std::size_t g = 0; g < n_heads; ++g) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      total[g][v] = load(out + g * out_stride + v * n_lanes);
    }
  }
  i32x4 touched = {};
  for (std::size_t p = 0; p < n_positions; ++p, values += head_dim) {
    if constexpr (touches_ahead<S>) touched ^= load_as<i32x4>(ahead.at(p));
    const auto row = load_vectors<n_vectors>(values);
    for (std::size_t v = 0; v < n_vectors; ++v) {
      for (std::size_t g = 0; g < n_heads; ++g) {
        total[g][v] = total[g][v] + splat(weights[g * weights_stride + p]) * row.v[v];
      }
    }
  }
  pin(touched);
  for (std::size_t g = 0; g < n_heads; ++g) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      store(out + g * out_stride + v * n_lanes, total[g][v]);
    }
  }
}

// out += weights x values over positions [begin, end) of one block; returns the value rows taken,
// once a head. `followed`: a whole block comes after it.
template <class S, class T>
std::uint64_t mix(const StoredRows<S>& rows, const T* weights, std::size_t weights_stride,
                  std::size_t group, std::size_t begin, std::size_t end, bool followed, T* out,
                  std::size_t out_stride) noexcept {
  const std::size_t head_dim = rows.head_dim;
  std::uint64_t n_rows = 0;
  for_head_tiles(group, [&](auto width, std::size_t g) {
    const S* values = rows.values + begin * head_dim;
    const T* head_weights = weights + g * weights_stride + begin;
    T* head_out = out + g * out_stride;
    std::size_t d = 0;
    for (; d + tile_columns <= head_dim; d += tile_columns) {
      const Ahead<S> ahead = followed
                                 ? Ahead<S>{values + (end - begin) * head_dim + d * lines_a_tile,
                                            lines_a_tile * head_dim, tile_columns}
                                 : Ahead<S>{values, 0, 0};
      mix_tile<width(), tile_columns / n_lanes>(values + d, head_dim, head_weights, weights_stride,
                                                end - begin, head_out + d, out_stride, ahead);
    }
    for (; d + n_lanes <= head_dim; d += n_lanes) {
      mix_tile<width(), 1>(values + d, head_dim, head_weights, weights_stride, end - begin,
                           head_out + d, out_stride, Ahead<S>{values, 0, 0});
    }
    for (; d < head_dim; ++d) {
      for (std::size_t h = 0; h < width(); ++h) {
        T total = head_out[h * out_stride + d];
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

template <class S, class T>
AttendWork weigh(const StoredRows<S>& rows, const T* q, std::size_t q_stride, std::size_t group,
                 std::size_t begin, std::size_t end, T scale, T* weights,
                 std::size_t weights_stride) noexcept {
  for (std::size_t g = 0; g < group; ++g) std::fill_n(weights + g * weights_stride, begin, T{0});
  const AttendWork work{
      .scores = scores(rows, q, q_stride, group, begin, end, scale, weights, weights_stride)};
  for (std::size_t g = 0; g < group; ++g) {
    softmax(std::span<T>(weights + g * weights_stride + begin, end - begin));
  }
  return work;
}

template <class S, class T>
AttendWork mix_all(const StoredRows<S>& rows, const T* weights, std::size_t weights_stride,
                   std::size_t group, std::size_t begin, std::size_t end, T* out,
                   std::size_t out_stride) noexcept {
  for (std::size_t g = 0; g < group; ++g) std::fill_n(out + g * out_stride, rows.head_dim, T{0});
  AttendWork work;
  for (std::size_t p = begin; p < end; p += position_block) {
    const bool followed = p + 2 * position_block <= end;
    work.mixed_rows += mix(rows, weights, weights_stride, group, p,
                           std::min(end, p + position_block), followed, out, out_stride);
  }
  return work;
}

template <class S, class T>
AttendWork attend_rows(const StoredRows<S>& rows, const T* q, std::size_t row_stride,
                       std::size_t group, std::size_t first_position, std::size_t n_rows,
                       std::size_t window, T scale, std::span<T> scratch, T* out) noexcept {
  const std::size_t head_dim = rows.head_dim;
  const std::size_t stride = first_position + n_rows;  // of a head's weights
  AttendWork work;
  const auto window_begin = [&](std::size_t position) {
    return window == 0 || position < window ? std::size_t{0} : position + 1 - window;
  };
  if (n_rows == 1) {  // nothing to share a block of keys with
    const std::size_t begin = window_begin(first_position);
    work = weigh(rows, q, head_dim, group, begin, stride, scale, scratch.data(), stride);
    work.mixed_rows =
        mix_all(rows, scratch.data(), stride, group, begin, stride, out, head_dim).mixed_rows;
    return work;
  }
  for (std::size_t tile = 0; tile < n_rows; tile += row_tile) {
    const std::size_t tile_end = std::min(n_rows, tile + row_tile);
    const std::size_t last = first_position + tile_end;
    // For every row of the tile, the part of a block of positions that it sees.
    const auto for_blocks = [&](auto f) {
      for (std::size_t p = window_begin(first_position + tile); p < last; p += position_block) {
        for (std::size_t r = tile; r < tile_end; ++r) {
          const std::size_t position = first_position + r;
          const std::size_t begin = std::max(p, window_begin(position));
          const std::size_t end = std::min(p + position_block, position + 1);
          if (begin < end) f(r, begin, end, scratch.data() + (r - tile) * group * stride);
        }
      }
    };
    for_blocks([&](std::size_t r, std::size_t begin, std::size_t end, T* weights) {
      work.scores +=
          scores(rows, q + r * row_stride, head_dim, group, begin, end, scale, weights, stride);
    });
    for (std::size_t r = tile; r < tile_end; ++r) {
      const std::size_t position = first_position + r;
      const std::size_t begin = window_begin(position);
      for (std::size_t g = 0; g < group; ++g) {
        softmax(scratch.subspan(((r - tile) * group + g) * stride + begin, position + 1 - begin));
        std::fill_n(out + r * row_stride + g * head_dim, head_dim, T{0});
      }
    }
    for_blocks([&](std::size_t r, std::size_t begin, std::size_t end, T* weights) {
      work.mixed_rows +=
          mix(rows, weights, stride, group, begin, end, false, out + r * row_stride, head_dim);
    });
  }
  return work;
}

}  // namespace

template <class T>
AttendWork attention_weights(const KeyValueRows& rows, const T* q, std::size_t q_stride,
                             std::size_t group, std::size_t begin, std::size_t end, T scale,
                             T* weights, std::size_t weights_stride) noexcept {
  return with_stored<T>(rows, [&](const auto& stored) {
    return weigh(stored, q, q_stride, group, begin, end, scale, weights, weights_stride);
  });
}

template <class T>
AttendWork attention_mix(const KeyValueRows& rows, const T* weights, std::size_t weights_stride,
                         std::size_t group, std::size_t begin, std::size_t end, T* out,
                         std::size_t out_stride) noexcept {
  return with_stored<T>(rows, [&](const auto& stored) {
    return mix_all(stored, weights, weights_stride, group, begin, end, out, out_stride);
  });
}

template <class T>
AttendWork attend_block(const KeyValueRows& rows, const T* q, std::size_t row_stride,
                        std::size_t group, std::size_t first_position, std::size_t n_rows,
                        std::size_t window, T scale, std::span<T> scratch, T* out) noexcept {
  return with_stored<T>(rows, [&](const auto& stored) {
    return attend_rows(stored, q, row_stride, group, first_position, n_rows, window, scale, scratch,
                       out);
  });
}

std::size_t attend_scratch(std::size_t n_rows, std::size_t group, std::size_t end) noexcept {
  return std::min(n_rows, row_tile) * group * end;
}

#define KVLENS_ATTEND(T)                                                                         \
  template AttendWork attention_weights(const KeyValueRows&, const T*, std::size_t, std::size_t, \
                                        std::size_t, std::size_t, T, T*, std::size_t) noexcept;  \
  template AttendWork attention_mix(const KeyValueRows&, const T*, std::size_t, std::size_t,     \
                                    std::size_t, std::size_t, T*, std::size_t) noexcept;         \
  template AttendWork attend_block(const KeyValueRows&, const T*, std::size_t, std::size_t,      \
                                   std::size_t, std::size_t, std::size_t, T, std::span<T>,       \
                                   T*) noexcept;
KVLENS_ATTEND(float)
KVLENS_ATTEND(double)
#undef KVLENS_ATTEND

}  // namespace kvlens::ops
