// Ways to bring the same tokens into a cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kvlens/random.h"
#include "kvlens/session.h"
#include "kvlens/thread_pool.h"
#include "support/expect.h"
#include "support/models.h"

namespace kvlens::testing {

// Sizes of the consecutive calls: the first is a prefill; of the others, those of one token are a
// decode when `decode_singles`, else an extend like the longer ones.
struct Composition {
  std::vector<std::size_t> parts;
  bool decode_singles = true;
};

inline std::string describe(const Composition& composition) {
  std::string text = composition.decode_singles ? "calls" : "extend calls";
  for (const std::size_t part : composition.parts) text += " " + std::to_string(part);
  return text;
}

// All 2^(n-1) ways to write n as a sum in order.
inline std::vector<Composition> all_compositions(std::size_t n, bool decode_singles) {
  std::vector<Composition> all;
  for (std::size_t cuts = 0; cuts < std::size_t{1} << (n - 1); ++cuts) {
    Composition composition{{1}, decode_singles};
    for (std::size_t i = 0; i + 1 < n; ++i) {
      if (((cuts >> i) & 1U) != 0) {
        composition.parts.push_back(1);
      } else {
        ++composition.parts.back();
      }
    }
    all.push_back(composition);
  }
  return all;
}

inline Composition random_composition(SplitMix64& rng, std::size_t n) {
  Composition composition{{}, rng.next() % 2 == 0};
  for (std::size_t left = n; left > 0;) {
    const std::size_t part = random_size(rng, 1, left);
    composition.parts.push_back(part);
    left -= part;
  }
  return composition;
}

// One call of a composition. `stepwise` goes by begin, advance, finish.
template <class T>
Result<Step<T>> run_part(Session<T>& session, std::span<const std::uint32_t> tokens,
                         bool decode_singles, bool stepwise, StageTap<T>* tap = nullptr) {
  const bool first = session.kv_len() == 0;
  if (stepwise) {
    using Phase = Session<T>::Phase;
    if (auto begun = session.begin(first ? Phase::prefill : Phase::extend, tokens); !begun) {
      return std::unexpected(begun.error());
    }
    for (;;) {
      auto left = session.advance(tap);
      if (!left) return std::unexpected(left.error());
      if (*left == 0) break;
    }
    return session.finish(tap);
  }
  if (first) return session.prefill(tokens, tap);
  if (tokens.size() == 1 && decode_singles) return session.decode(tokens[0], tap);
  return session.extend(tokens, tap);
}

// A pool of `n_threads` that shares the smallest job and lets all of them work at a time, whatever
// the machine has; null for 0, and where the build has no threads.
inline std::shared_ptr<ThreadPool> make_pool(std::size_t n_threads) {
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
  if (n_threads > 1) return nullptr;
#endif
  return n_threads == 0
             ? nullptr
             : must(ThreadPool::create(n_threads, {.cores = n_threads, .smallest_shared_job = 0}));
}

}  // namespace kvlens::testing
