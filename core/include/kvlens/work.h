// Counters of work done, incremented where it is done; and the contrast of two schedules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kvlens/config.h"
#include "kvlens/error.h"

namespace kvlens {

#define KVLENS_WORK_COUNTERS(X)                                                                 \
  X(token_forwards)         /* rows advanced through all layers */                              \
  X(prefill_tokens)         /* rows of prefill calls */                                         \
  X(decode_tokens)          /* rows of decode and extend calls */                               \
  X(cache_appends)          /* rows committed, summed over layers */                            \
  X(qkv_projection_rows)    /* rows through a q, k or v projection, summed over layers */       \
  X(attention_score_values) /* entries of attention tensors made: a cached row has its length a \
                               head, a replay the dense T x T grid a head */                    \
  X(causal_score_values)    /* query-key dot products computed */                               \
  X(multiply_adds_qkv)                                                                          \
  X(multiply_adds_scores)                                                                       \
  X(multiply_adds_mix) /* weights x values */                                                   \
  X(multiply_adds_output)                                                                       \
  X(multiply_adds_ffn)                                                                          \
  X(multiply_adds_logits)                                                                       \
  X(kv_bytes_read) /* bytes of key and value rows that attention went over, once a              \
                      query head */                                                             \
  X(kv_bytes_written)

struct Work {
#define KVLENS_WORK_FIELD(name) std::uint64_t name = 0;
  KVLENS_WORK_COUNTERS(KVLENS_WORK_FIELD)
#undef KVLENS_WORK_FIELD

  [[nodiscard]] bool operator==(const Work&) const = default;
  [[nodiscard]] std::uint64_t multiply_adds() const noexcept {
    return multiply_adds_qkv + multiply_adds_scores + multiply_adds_mix + multiply_adds_output +
           multiply_adds_ffn + multiply_adds_logits;
  }
};

// Sum of every counter. Errors: work_overflow; neither argument changes.
[[nodiscard]] Result<Work> checked_add(const Work& a, const Work& b);

// What a schedule did: the lengths of the prefix at each logits-producing call, and its work.
// Cached: first a prefill of prefix_lengths[0] tokens, then a decode for each further length.
// Replay: a complete-prefix forward of each length.
struct Schedule {
  std::span<const std::size_t> prefix_lengths;  // strictly increasing by one after the first
  Work work;
};

struct Contrast {
  std::uint64_t cached_score_values;
  std::uint64_t replay_score_values;
  std::uint64_t avoided_score_values;
  std::uint64_t cached_projection_rows;
  std::uint64_t replay_projection_rows;
  std::uint64_t avoided_projection_rows;
};

// Measured against formula, field by field, for both schedules.
// Errors: count_mismatch (field, measured, computed), cached_exceeds_replay, work_overflow,
// invalid_argument (an empty schedule, or lengths of the two that differ).
[[nodiscard]] Result<Contrast> contrast(const Config& config, const Schedule& cached,
                                        const Schedule& replay);

}  // namespace kvlens
