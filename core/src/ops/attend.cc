// Both kinds of kernels of a stored type, called over blocks of positions that fit the first-level
// cache.
#include "ops/attend.h"

#include <algorithm>

#include "ops/attend_float.h"
#include "ops/attend_q8_0.h"
#include "ops/attend_tiles.h"
#include "ops/row_ops.h"

namespace kvlens::ops {
namespace {

constexpr std::size_t row_tile = 8;

// Tiles of columns go over a block of values again and again, which no machine's own prefetches
// follow. So floats are read before, a long stretch at once, at several places. (Rows of half the
// bytes or less come in time by themselves.)
constexpr std::size_t positions_ahead = 4 * position_block;
void read_ahead(const std::byte* from, std::size_t size) noexcept {
  constexpr std::size_t line_bytes = 64;
  constexpr std::size_t n_places = 4;
  const std::size_t apart = size / n_places;
  i32x4 lines = {};
  for (std::size_t at = 0; at + sizeof lines <= apart; at += line_bytes) {
    for (std::size_t i = 0; i < n_places; ++i) lines ^= load_as<i32x4>(from + at + i * apart);
  }
  keep(lines);
}

// f(rows) as what they hold.
template <class T, class F>
std::uint64_t with_stored(const KeyValueRows& rows, F f) noexcept {
  const auto as = [&]<class S>(const S*) {
    return f(StoredRows<S>{reinterpret_cast<const S*>(rows.keys),
                           reinterpret_cast<const S*>(rows.values), rows.head_dim});
  };
  if constexpr (std::is_same_v<T, float>) {
    if (rows.dtype == DType::bf16) return as(static_cast<const BFloat16*>(nullptr));
    if (rows.dtype == DType::q8_0) return f(Q8Rows{rows.keys, rows.values, rows.head_dim});
  }
  return as(static_cast<const T*>(nullptr));
}

// The stored type's kernels.
template <class T>
std::uint64_t scores(const KeyValueRows& rows, const T* q, std::size_t q_stride, std::size_t group,
                     std::size_t begin, std::size_t end, T scale, T* out,
                     std::size_t out_stride) noexcept {
  return with_stored<T>(rows, [&](const auto& stored) {
    return scores(stored, q, q_stride, group, begin, end, scale, out, out_stride);
  });
}
template <class T>
std::uint64_t mix(const KeyValueRows& rows, const T* weights, std::size_t weights_stride,
                  std::size_t group, std::size_t begin, std::size_t end, T* out,
                  std::size_t out_stride) noexcept {
  return with_stored<T>(rows, [&](const auto& stored) {
    return mix(stored, weights, weights_stride, group, begin, end, out, out_stride);
  });
}

}  // namespace

template <class T>
AttendWork attention_weights(const KeyValueRows& rows, const T* q, std::size_t q_stride,
                             std::size_t group, std::size_t begin, std::size_t end, T scale,
                             T* weights, std::size_t weights_stride) noexcept {
  for (std::size_t g = 0; g < group; ++g) std::fill_n(weights + g * weights_stride, begin, T{0});
  const AttendWork work{
      .scores = scores(rows, q, q_stride, group, begin, end, scale, weights, weights_stride)};
  for (std::size_t g = 0; g < group; ++g) {
    softmax(std::span<T>(weights + g * weights_stride + begin, end - begin));
  }
  return work;
}

template <class T>
AttendWork attention_mix(const KeyValueRows& rows, const T* weights, std::size_t weights_stride,
                         std::size_t group, std::size_t begin, std::size_t end, T* out,
                         std::size_t out_stride) noexcept {
  for (std::size_t g = 0; g < group; ++g) std::fill_n(out + g * out_stride, rows.head_dim, T{0});
  AttendWork work;
  for (std::size_t p = begin; p < end; p = next_block(p)) {
    if (rows.dtype == DType::f32 && (p == begin || p % positions_ahead == 0)) {
      const std::size_t row_bytes = rows.head_dim * sizeof(T);
      read_ahead(rows.values + p * row_bytes, (std::min(end, p + positions_ahead) - p) * row_bytes);
    }
    work.mixed_rows +=
        mix(rows, weights, weights_stride, group, p, std::min(end, next_block(p)), out, out_stride);
  }
  return work;
}

template <class T>
AttendWork attend_block(const KeyValueRows& rows, const T* q, std::size_t row_stride,
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
    work =
        attention_weights(rows, q, head_dim, group, begin, stride, scale, scratch.data(), stride);
    work.mixed_rows =
        attention_mix(rows, scratch.data(), stride, group, begin, stride, out, head_dim).mixed_rows;
    return work;
  }
  for (std::size_t tile = 0; tile < n_rows; tile += row_tile) {
    const std::size_t tile_end = std::min(n_rows, tile + row_tile);
    const std::size_t last = first_position + tile_end;
    // For every row of the tile, the part of a block of positions that it sees.
    const auto for_blocks = [&](auto f) {
      for (std::size_t p = window_begin(first_position + tile); p < last; p = next_block(p)) {
        for (std::size_t r = tile; r < tile_end; ++r) {
          const std::size_t position = first_position + r;
          const std::size_t begin = std::max(p, window_begin(position));
          const std::size_t end = std::min(next_block(p), position + 1);
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
          mix(rows, weights, stride, group, begin, end, out + r * row_stride, head_dim);
    });
  }
  return work;
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
