// Shared by the attention kernels of every stored type: tiles of heads, blocks of positions, and
// where the keys of a tile lie in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/attend.h"
#include "ops/vector.h"

namespace kvlens::ops {

inline constexpr std::size_t position_block = 64;
// Blocks begin at multiples of their size, so they are the same for every row, wherever its first
// position is.
constexpr std::size_t next_block(std::size_t position) noexcept {
  return (position / position_block + 1) * position_block;
}
inline constexpr std::size_t page_bytes = 4096;

// Calls f(width, first head) for tiles of `count` heads. The width is a compile-time 1, or at most
// 3 where tiles are `wide`.
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

// Rows that fit a page of memory, at least 1.
constexpr std::size_t rows_per_page(std::size_t row_bytes) noexcept {
  return row_bytes == 0 || row_bytes > page_bytes ? 1 : page_bytes / row_bytes;
}
// The distance between the keys of a tile: whole pages if there are enough rows.
constexpr std::size_t keys_apart(std::size_t furthest, std::size_t row_bytes) noexcept {
  const std::size_t page = rows_per_page(row_bytes);
  return furthest < 4 * page ? furthest : furthest / page * page;
}

// Reads one byte at each of `n` places that are `apart` bytes from one another.
template <std::size_t n>
inline void touch(const std::byte* from, std::size_t apart) noexcept {
  unsigned touched = 0;
  for (std::size_t i = 0; i < n; ++i) touched |= load_as<std::uint8_t>(from + i * apart);
  keep(touched);
}

// Keys in a tile: as many sums as fit the registers beside the operands.
constexpr std::size_t keys_per_tile(std::size_t n_heads) noexcept { return n_heads == 3 ? 3 : 4; }

// Calls f(number of keys, first position, distance) for tiles of `n_keys` of the positions `seen`,
// then one by one for those that are left; returns the number of positions. The keys of a tile are
// as far apart as they can be (linear_int8.h says why several places are read at once) and reach a
// new page of memory together. With `touches_pages` that page is touched one page ahead, so that
// the waits for its address and for its first line overlap.
template <std::size_t n_keys, bool touches_pages, class F>
std::size_t for_key_tiles(const std::byte* keys, std::size_t row_bytes, const Positions& seen,
                          F f) noexcept {
  const auto [begin, end] = seen;
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
