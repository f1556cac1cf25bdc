// Calls the kernels of the stored type over blocks of positions that fit the first-level cache.
#include "ops/attend.h"

#include <algorithm>

#include "kvlens/memory.h"
#include "ops/attend_float.h"
#include "ops/attend_q8_0.h"
#include "ops/attend_tiles.h"
#include "ops/row_ops.h"

namespace kvlens::ops {
namespace {

// Tiles of columns pass over a block of values several times, a pattern that hardware prefetchers
// do not follow. So floats are read ahead, a long stretch at once, at several places. Rows of half
// the bytes or less arrive in time without this.
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

// Calls f with the rows as what they hold.
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
std::uint64_t scores(const KeyValueRows& rows, const HeadRows<const T>& q, const Positions& seen,
                     T scale, const HeadRows<T>& out) noexcept {
  return with_stored<T>(rows,
                        [&](const auto& stored) { return scores(stored, q, seen, scale, out); });
}
template <class T>
std::uint64_t mix(const KeyValueRows& rows, const HeadRows<const T>& weights, const Positions& seen,
                  const HeadRows<T>& out) noexcept {
  return with_stored<T>(rows, [&](const auto& stored) { return mix(stored, weights, seen, out); });
}

template <class T>
HeadRows<const T> as_input(const HeadRows<T>& rows) noexcept {
  return {rows.data, rows.stride, rows.n_heads};
}

}  // namespace

template <class T>
AttendWork attention_weights(const KeyValueRows& rows, const HeadRows<const T>& q,
                             const Positions& seen, T scale, const HeadRows<T>& weights) noexcept {
  for (std::size_t g = 0; g < q.n_heads; ++g) std::fill_n(weights.row(g), seen.begin, T{0});
  const AttendWork work{.scores = scores(rows, q, seen, scale, weights)};
  for (std::size_t g = 0; g < q.n_heads; ++g) {
    softmax(std::span<T>(weights.row(g) + seen.begin, seen.end - seen.begin));
  }
  return work;
}

template <class T>
AttendWork attention_mix(const KeyValueRows& rows, const HeadRows<const T>& weights,
                         const Positions& seen, const HeadRows<T>& out) noexcept {
  for (std::size_t g = 0; g < out.n_heads; ++g) std::fill_n(out.row(g), rows.head_dim, T{0});
  AttendWork work;
  for (std::size_t p = seen.begin; p < seen.end; p = next_block(p)) {
    if (rows.dtype == DType::f32 && (p == seen.begin || p % positions_ahead == 0)) {
      const std::size_t row_bytes = rows.head_dim * sizeof(T);
      read_ahead(rows.values + p * row_bytes,
                 (std::min(seen.end, p + positions_ahead) - p) * row_bytes);
    }
    work.mixed_rows += mix(rows, weights, {p, std::min(seen.end, next_block(p))}, out);
  }
  return work;
}

template <class T>
AttendWork attend_block(const KeyValueRows& rows, const QueryBlock<T>& block, T scale,
                        std::span<T> scratch) noexcept {
  const std::size_t head_dim = rows.head_dim;
  const std::size_t stride = block.first_position + block.n_rows;  // of a head's weights
  const auto queries = [&](std::size_t r) {
    return HeadRows<const T>{block.q + r * block.row_stride, head_dim, block.n_heads};
  };
  const auto outputs = [&](std::size_t r) {
    return HeadRows<T>{block.out + r * block.row_stride, head_dim, block.n_heads};
  };
  const auto seen_by = [&](std::size_t r) {
    const std::size_t position = block.first_position + r;
    return Positions{window_begin(position, block.window), position + 1};
  };
  AttendWork work;
  if (block.n_rows == 1) {  // nothing to share a block of keys with
    const HeadRows<T> weights{scratch.data(), stride, block.n_heads};
    work = attention_weights(rows, queries(0), seen_by(0), scale, weights);
    work.mixed_rows = attention_mix(rows, as_input(weights), seen_by(0), outputs(0)).mixed_rows;
    return work;
  }
  for (std::size_t tile = 0; tile < block.n_rows; tile += query_tile_rows) {
    const std::size_t tile_end = std::min(block.n_rows, tile + query_tile_rows);
    const auto weights_of = [&](std::size_t r) {
      return HeadRows<T>{scratch.data() + (r - tile) * block.n_heads * stride, stride,
                         block.n_heads};
    };
    // Calls f for every row of the tile and the part of a block of positions that it sees.
    const auto for_blocks = [&](auto f) {
      const std::size_t last = seen_by(tile_end - 1).end;
      for (std::size_t p = seen_by(tile).begin; p < last; p = next_block(p)) {
        for (std::size_t r = tile; r < tile_end; ++r) {
          const Positions seen = seen_by(r);
          const Positions part{std::max(p, seen.begin), std::min(next_block(p), seen.end)};
          if (part.begin < part.end) f(r, part);
        }
      }
    };
    for_blocks([&](std::size_t r, const Positions& part) {
      work.scores += scores(rows, queries(r), part, scale, weights_of(r));
    });
    for (std::size_t r = tile; r < tile_end; ++r) {
      const Positions seen = seen_by(r);
      for (std::size_t g = 0; g < block.n_heads; ++g) {
        softmax(std::span<T>(weights_of(r).row(g) + seen.begin, seen.end - seen.begin));
        std::fill_n(outputs(r).row(g), head_dim, T{0});
      }
    }
    for_blocks([&](std::size_t r, const Positions& part) {
      work.mixed_rows += mix(rows, as_input(weights_of(r)), part, outputs(r));
    });
  }
  return work;
}

template <class T>
Result<std::size_t> attend_scratch(std::size_t n_rows, std::size_t n_heads, std::size_t end) {
  return element_count({std::min(n_rows, query_tile_rows), n_heads, end}, sizeof(T));
}

#define KVLENS_ATTEND(T)                                                                   \
  template AttendWork attention_weights(const KeyValueRows&, const HeadRows<const T>&,     \
                                        const Positions&, T, const HeadRows<T>&) noexcept; \
  template AttendWork attention_mix(const KeyValueRows&, const HeadRows<const T>&,         \
                                    const Positions&, const HeadRows<T>&) noexcept;        \
  template AttendWork attend_block(const KeyValueRows&, const QueryBlock<T>&, T,           \
                                   std::span<T>) noexcept;                                 \
  template Result<std::size_t> attend_scratch<T>(std::size_t, std::size_t, std::size_t);
KVLENS_ATTEND(float)
KVLENS_ATTEND(double)
#undef KVLENS_ATTEND

}  // namespace kvlens::ops
