// What the attention kernels of every kind of stored row share: tiles of heads, blocks of
// positions, and where in memory a tile's keys lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/vector.h"

namespace kvlens::ops {

inline constexpr std::size_t position_block = 64;
// Blocks begin at multiples: where a row's first position lies does not change the others' blocks.
constexpr std::size_t next_block(std::size_t position) noexcept {
  return (position / position_block + 1) * position_block;
}
inline constexpr std::size_t page_bytes = 4096;

// Calls f(width, first head) with a compile-time tile width of 1, or of at most 3 where tiles are
// `wide`, until `count` heads are used up.
template <bool wide, class F>
void for_head_tiles(std::size_t count, F f) noexcept {
  std::size_t first = 0;
  while (first < count) {
    const std::size_t rest = count - first;
    if (!wide || rest == 1) {
      f(std::integral_constant<std::size_t, 1>{}, first);
      first += 1;
    } else if (rest == 2 || rest == 4) {
      f(std::integral_constant<std::size_t, wide ? 2 : 1>{}, first);
      first += 2;
    } else {
      f(std::integral_constant<std::size_t, wide ? 3 : 1>{}, first);
      first += 3;
    }
  }
}

// At least 1, whatever the row.
constexpr std::size_t rows_per_page(std::size_t row_bytes) noexcept {
  return row_bytes == 0 || row_bytes > page_bytes ? 1 : page_bytes / row_bytes;
}
// How far the keys of a tile lie from one another: a number of pages where there are enough.
constexpr std::size_t keys_apart(std::size_t furthest, std::size_t row_bytes) noexcept {
  const std::size_t page = rows_per_page(row_bytes);
  return furthest < 4 * page ? furthest : furthest / page * page;
}

// Reads a byte at each of `n` places, `apart` bytes from one another.
template <std::size_t n>
inline void touch(const std::byte* from, std::size_t apart) noexcept {
  unsigned touched = 0;
  for (std::size_t i = 0; i < n; ++i) touched |= load_as<std::uint8_t>(from + i * apart);
  keep(touched);
}

// Keys of a tile: so many sums as registers hold beside what they read.
constexpr std::size_t keys_per_tile(std::size_t n_heads) noexcept { return n_heads == 3 ? 3 : 4; }

// Calls f(number of keys, first position, distance) for tiles of `n_keys` positions of [begin, end)
// and for what is left one by one; returns how many positions that were. A tile's keys are as far
// apart as they can be (see linear_int8.h on reading at several places), and come to a new page of
// memory all at once, which may be touched a page before: the waits for its address and its first
// line overlap.
template <std::size_t n_keys, bool touches_pages, class F>
std::size_t for_key_tiles(const std::byte* keys, std::size_t row_bytes, std::size_t begin,
                          std::size_t end, F f) noexcept {
  const std::size_t apart = keys_apart((end - begin) / n_keys, row_bytes);
  const std::size_t page = rows_per_page(row_bytes);
  std::size_t p = begin;
  while (p < begin + apart) {
    const std::size_t page_end = std::min(begin + apart, p + page);
    if (touches_pages && page_end < begin + apart) {
      touch<n_keys>(keys + page_end * row_bytes, apart * row_bytes);
    }
    for (; p < page_end; ++p) f(std::integral_constant<std::size_t, n_keys>{}, p, apart);
  }
  for (p += (n_keys - 1) * apart; p < end; ++p) {
    f(std::integral_constant<std::size_t, 1>{}, p, std::size_t{0});
  }
  return p - begin;
}

}  // namespace kvlens::ops
