#include "ops/attend_q8_0.h"

#include <algorithm>
#include <bit>

#include "ops/attend_tiles.h"
#include "ops/blocks.h"
#include "ops/half.h"
#include "ops/int8_dot.h"
#include "ops/rounding.h"
#include "ops/vector.h"

namespace kvlens::ops {
namespace {

constexpr std::size_t block_values = 32;
constexpr std::size_t bytes_per_block = block_bytes(DType::q8_0);
constexpr std::size_t scale_bytes = sizeof(Half);
constexpr float largest_word = 32767;
constexpr float least_for_words = 0x1p-112f;
static_assert(position_block * 127 * 32767 <= 0x7fffffff, "sums of a block of positions fit");

constexpr std::size_t bytes_per_row(std::size_t head_dim) noexcept {
  return head_dim / block_values * bytes_per_block;
}

// Rounds `n` values, a multiple of eight, to 16 bits and returns their scale.
[[gnu::noinline]] float to_words(const float* x, std::size_t n, std::int16_t* words) noexcept {
  const IntegerScale by =
      integer_scale(largest_magnitude_bits(x, n), largest_word, least_for_words);
  const f32x4 inverse = splat(by.inverse);
  for (std::size_t i = 0; i < n; i += 2 * n_lanes) {
    store_words(words + i, to_integers(load(x + i) * inverse),
                to_integers(load(x + i + n_lanes) * inverse));
  }
  return by.scale;
}

i16x8 load_wide(const std::byte* bytes) noexcept {
#if defined(__wasm_simd128__)
  return std::bit_cast<i16x8>(wasm_i16x8_load8x8(bytes));
#else
  using i8x8 = std::int8_t __attribute__((vector_size(8)));
  return __builtin_convertvector(load_as<i8x8>(bytes), i16x8);
#endif
}

// Scales of the blocks at the first `n` <= 4 places, `apart` bytes from one another; the others
// are 0.
template <std::size_t n>
f32x4 load_scales(const std::byte* block, std::size_t apart) noexcept {
  u32x4 bits = {};
  for (std::size_t i = 0; i < n; ++i) bits[i] = load_as<Half>(block + i * apart).bits;
  return halves_to_floats(bits);
}

template <std::size_t n_heads>
struct WideQueries {
  std::int16_t words[n_heads][q8_0_longest_row];
  float scale[n_heads];
};

// Scores of `n_heads` heads and `n_keys` positions, `apart` from one another.
template <std::size_t n_heads, std::size_t n_keys>
void score_tile(const std::byte* keys, std::size_t apart, std::size_t head_dim,
                const WideQueries<n_heads>& q, const HeadRows<float>& out) noexcept {
  const std::size_t apart_bytes = apart * bytes_per_row(head_dim);
  f32x4 totals[n_heads] = {};  // one key per lane
  for (std::size_t d = 0; d < head_dim; d += block_values, keys += bytes_per_block) {
    i32x4 sums[n_heads][4] = {};
    KVLENS_NO_UNROLL
    for (std::size_t i = 0; i < block_values; i += 8) {
      for (std::size_t k = 0; k < n_keys; ++k) {
        const i16x8 key = load_wide(keys + k * apart_bytes + scale_bytes + i);
        for (std::size_t g = 0; g < n_heads; ++g) {
          sums[g][k] += pair_dot(key, load_as<i16x8>(q.words[g] + d + i));
        }
      }
    }
    const f32x4 scales = load_scales<n_keys>(keys, apart_bytes);
    for (std::size_t g = 0; g < n_heads; ++g) {
      const i32x4 dots =
          add_pairs(add_pairs(sums[g][0], sums[g][1]), add_pairs(sums[g][2], sums[g][3]));
      totals[g] = totals[g] + __builtin_convertvector(dots, f32x4) * scales;
    }
  }
  for (std::size_t g = 0; g < n_heads; ++g) {
    for (std::size_t k = 0; k < n_keys; ++k) {
      out.row(g)[k * apart] = q.scale[g] * totals[g][k];
    }
  }
}

// Weights times the scales of values, as integers, of `n_heads` heads.
template <std::size_t n_heads>
struct WideWeights {
  alignas(16) std::int16_t words[n_heads][position_block];  // an even number, the last maybe 0
  float scale[n_heads];
};

// Columns of values that a tile mixes: more sums would not stay in registers.
constexpr std::size_t q8_tile_columns = 8;

// Mixes that many columns of `n_positions` rows, from `values` on.
template <std::size_t n_heads>
void mix_tile(const std::byte* values, std::size_t row_bytes, std::size_t n_positions,
              const WideWeights<n_heads>& weights, const HeadRows<float>& out) noexcept {
  i32x4 low[n_heads] = {};
  i32x4 high[n_heads] = {};
  const auto add = [&](std::size_t p, const std::byte* first, const std::byte* second) {
    // Two positions' values of a column side by side, as their weights are.
    const i16x8 a = load_wide(first);
    const i16x8 b = load_wide(second);
    const i16x8 columns_low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    const i16x8 columns_high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    for (std::size_t g = 0; g < n_heads; ++g) {
      const auto both = std::bit_cast<i16x8>(splat(load_as<std::int32_t>(weights.words[g] + p)));
      low[g] += pair_dot(columns_low, both);
      high[g] += pair_dot(columns_high, both);
    }
  };
  std::size_t p = 0;
  for (; p + 2 <= n_positions; p += 2, values += 2 * row_bytes) add(p, values, values + row_bytes);
  // There may be no row after the last; its weight is 0.
  if (p < n_positions) add(p, values, values);
  for (std::size_t g = 0; g < n_heads; ++g) {
    const f32x4 scale = splat(weights.scale[g]);
    float* to = out.row(g);
    store(to, load(to) + __builtin_convertvector(low[g], f32x4) * scale);
    store(to + n_lanes, load(to + n_lanes) + __builtin_convertvector(high[g], f32x4) * scale);
  }
}

}  // namespace

void store_q8_0(std::span<const float> row, std::byte* to) noexcept {
  for (std::size_t d = 0; d < row.size(); d += block_values, to += bytes_per_block) {
    const float* x = row.data() + d;
    const auto max = std::bit_cast<float>(largest_magnitude_bits(x, block_values));
    const Half scale = to_half_not_below(max / 127);
    std::memcpy(to, &scale, sizeof scale);
    const float step = to_float(scale);
    const f32x4 inverse = splat(step == 0 ? 0.0f : 1 / step);
    for (std::size_t i = 0; i < block_values; i += 16) {
      i32x4 integers[4];
      for (std::size_t v = 0; v < 4; ++v) {
        integers[v] = to_integers(load(x + i + v * n_lanes) * inverse);
      }
      store_bytes(to + scale_bytes + i, integers);
    }
  }
}

std::uint64_t scores(const Q8Rows& rows, const HeadRows<const float>& q, const Positions& seen,
                     float scale, const HeadRows<float>& out) noexcept {
  std::uint64_t n_scores = 0;
  for_head_tiles<true>(q.n_heads, [&](auto width, std::size_t g) {
    WideQueries<width()> queries;
    for (std::size_t h = 0; h < width(); ++h) {
      queries.scale[h] = scale * to_words(q.row(g + h), rows.head_dim, queries.words[h]);
    }
    n_scores += width() *
                for_key_tiles<keys_per_tile(width()), true>(
                    rows.keys, bytes_per_row(rows.head_dim), seen,
                    [&](auto n_keys, std::size_t p, std::size_t apart) {
                      score_tile<width(), n_keys()>(rows.keys + p * bytes_per_row(rows.head_dim),
                                                    apart, rows.head_dim, queries, out.from(g, p));
                    });
  });
  return n_scores;
}

std::uint64_t mix(const Q8Rows& rows, const HeadRows<const float>& weights, const Positions& seen,
                  const HeadRows<float>& out) noexcept {
  const std::size_t row_bytes = bytes_per_row(rows.head_dim);
  const std::size_t n_positions = seen.end - seen.begin;
  const std::byte* values = rows.values + seen.begin * row_bytes;
  // Not a compile-time constant: the compiler would unroll the rounding and spill registers.
  const std::size_t n_words = (n_positions + 7) / 8 * 8;
  std::uint64_t n_rows = 0;
  for (std::size_t d = 0; d < rows.head_dim; d += block_values, values += bytes_per_block) {
    alignas(16) float scales[position_block] = {};
    std::size_t p = 0;
    for (; p + n_lanes <= n_positions; p += n_lanes) {
      store(scales + p, load_scales<n_lanes>(values + p * row_bytes, row_bytes));
    }
    for (; p < n_positions; ++p) scales[p] = half_at(values + p * row_bytes);
    for_head_tiles<true>(out.n_heads, [&](auto width, std::size_t g) {
      WideWeights<width()> wide;
      for (std::size_t h = 0; h < width(); ++h) {
        alignas(16) float products[position_block];
        const float* head_weights = weights.row(g + h) + seen.begin;
        std::size_t i = 0;
        for (; i + n_lanes <= n_positions; i += n_lanes) {
          store(products + i, load(head_weights + i) * load(scales + i));
        }
        for (; i < n_words; ++i) products[i] = i < n_positions ? head_weights[i] * scales[i] : 0;
        wide.scale[h] = to_words(products, n_words, wide.words[h]);
      }
      for (std::size_t column = 0; column < block_values; column += q8_tile_columns) {
        mix_tile<width()>(values + scale_bytes + column, row_bytes, n_positions, wide,
                          out.from(g, d + column));
      }
      if (d == 0) n_rows += width() * n_positions;
    });
  }
  return n_rows;
}

}  // namespace kvlens::ops
