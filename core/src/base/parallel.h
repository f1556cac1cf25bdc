// Splitting outputs over a pool.
#pragma once

#include <algorithm>
#include <cstddef>

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

// `function(part, n_parts)` for every part; without a pool one part on the calling thread.
template <class F>
void run_parts(ThreadPool* pool, F&& function) {
  if (pool == nullptr || pool->n_threads() == 1) {
    function(std::size_t{0}, std::size_t{1});
  } else {
    pool->run(function);
  }
}

// `function(begin, end)` for parts of [0, n_rows). One row is not worth waking a thread for.
template <class F>
void run_rows(ThreadPool* pool, std::size_t n_rows, F&& function) {
  if (n_rows == 1) {
    function(std::size_t{0}, std::size_t{1});
  } else {
    run_parts(pool, [&](std::size_t part, std::size_t n_parts) {
      const IndexRange rows = part_of(n_rows, 1, part, n_parts);
      function(rows.begin, rows.end);
    });
  }
}

[[nodiscard]] inline std::size_t thread_count(const ThreadPool* pool) noexcept {
  return pool == nullptr ? 1 : pool->n_threads();
}

}  // namespace kvlens
