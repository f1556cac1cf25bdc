// Cutting a job over outputs into pieces, and sharing them with a pool where that saves time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kvlens/thread_pool.h"

namespace kvlens {

struct IndexRange {
  std::size_t begin;
  std::size_t end;
};

// Part `part` of [0, size), cut at multiples of `granularity`.
[[nodiscard]] constexpr IndexRange part_of(std::size_t size, std::size_t granularity,
                                           std::size_t part, std::size_t n_parts) noexcept {
  const std::size_t units = (size + granularity - 1) / granularity;
  return {.begin = std::min(size, units * part / n_parts * granularity),
          .end = std::min(size, units * (part + 1) / n_parts * granularity)};
}

// One value of a norm, a softmax or a rounding takes as long as this many multiply-adds do.
inline constexpr std::uint64_t multiply_adds_per_value = 16;

// Enough for threads that began late, or run slower, to take fewer pieces.
inline constexpr std::size_t pieces_per_thread = 4;

[[nodiscard]] inline std::size_t thread_count(const ThreadPool* pool) noexcept {
  return pool == nullptr ? 1 : pool->n_threads();
}

// How many threads to cut a job for: 1 where more would not save time.
[[nodiscard]] inline std::size_t threads_for(ThreadPool* pool,
                                             std::uint64_t multiply_adds) noexcept {
  return pool == nullptr ? 1 : pool->threads_for(multiply_adds);
}

// `function(piece, thread)` for every piece, on threads that were asked for by `threads_for`.
template <class F>
void run_pieces(ThreadPool* pool, std::size_t n_threads, std::size_t n_pieces, F&& function) {
  if (n_threads == 1) {
    for (std::size_t piece = 0; piece < n_pieces; ++piece) function(piece, std::size_t{0});
  } else {
    pool->run(n_pieces, function);
  }
}

// `function(range)` for ranges that make up [0, size), cut at multiples of `granularity`. The whole
// job takes as long as `multiply_adds`.
template <class F>
void run_ranges(ThreadPool* pool, std::size_t size, std::size_t granularity,
                std::uint64_t multiply_adds, F&& function) {
  const std::size_t n_threads = threads_for(pool, multiply_adds);
  const std::size_t n_units = (size + granularity - 1) / granularity;
  const std::size_t n_pieces =
      n_threads == 1 ? 1 : std::min(n_units, n_threads * pieces_per_thread);
  run_pieces(pool, n_threads, n_pieces, [&](std::size_t piece, std::size_t) {
    function(part_of(size, granularity, piece, n_pieces));
  });
}

// `function(begin, end)` for ranges that make up [0, n_rows), of rows of `width` values each.
template <class F>
void run_rows(ThreadPool* pool, std::size_t n_rows, std::size_t width, F&& function) {
  run_ranges(pool, n_rows, 1, n_rows == 1 ? 0 : n_rows * width * multiply_adds_per_value,
             [&](const IndexRange& rows) { function(rows.begin, rows.end); });
}

}  // namespace kvlens
