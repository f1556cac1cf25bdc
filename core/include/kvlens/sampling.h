// Choosing the next token from logits, with the draw as evidence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvlens/error.h"
#include "kvlens/random.h"

namespace kvlens {

struct SamplingConfig {
  // The largest logit, ties to the lower id; of the rest only the repetition penalty then counts.
  bool greedy = true;
  double temperature = 1.0;         // > 0
  std::size_t top_k = 0;            // 0: all
  double top_p = 1.0;               // (0, 1]: the smallest prefix of candidates that reaches it
  double min_p = 0.0;               // [0, 1): candidates below min_p x the largest probability go
  double repetition_penalty = 1.0;  // > 0: divides positive, multiplies negative logits of seen ids
};

struct Draw {
  std::uint32_t token;
  double probability;               // interval_end - interval_start
  std::optional<double> unit_draw;  // none for greedy
  double interval_start;            // half-open [start, end) that holds unit_draw
  double interval_end;
  std::size_t candidates;  // tokens left after top_k, top_p and min_p
};

// Errors: invalid_sampling (the field). Same bits on every platform.
[[nodiscard]] Result<void> validate(const SamplingConfig& config);

// Candidates are cut by rank (logit, larger first, ties by id); those kept share [0, 1) in order of
// id. Weights are exp((l - l_max) / temperature), the largest exactly 1, with compensated sums. One
// draw of `rng` a stochastic choice, none for greedy. `recent` are the ids that the repetition
// penalty applies to. Errors: invalid_sampling, empty_prompt (no logits), non_finite_value,
// out_of_memory; `rng` is then as it was.
template <class T>
[[nodiscard]] Result<Draw> sample(std::span<const T> logits, const SamplingConfig& config,
                                  SplitMix64& rng, std::span<const std::uint32_t> recent = {});

struct RankedToken {
  std::uint32_t token;
  double logit;
  double logprob;  // natural logarithm of softmax over all logits
};
// The `n` largest logits, larger first, ties by id. Errors: empty_prompt, non_finite_value,
// out_of_memory.
template <class T>
[[nodiscard]] Result<std::vector<RankedToken>> top_tokens(std::span<const T> logits, std::size_t n);

}  // namespace kvlens
