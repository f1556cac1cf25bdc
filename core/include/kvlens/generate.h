// The generation loop over a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvlens/error.h"
#include "kvlens/sampling.h"
#include "kvlens/session.h"
#include "kvlens/work.h"

namespace kvlens {

enum class StopReason : std::uint8_t { eos, token_limit, context_limit };

struct GenerateRequest {
  std::span<const std::uint32_t> prompt;
  std::size_t max_new_tokens = 0;  // 0 does no work
  std::optional<std::uint32_t> eos_token = {};
  SamplingConfig sampling;
};

struct GenerateStep {
  std::size_t prefix_length;  // tokens that the logits came after
  Draw draw;
};

struct Generation {
  std::vector<std::uint32_t> tokens;  // new ones, EOS included
  StopReason stop;
  std::vector<GenerateStep> steps;
  Work work;
};

// Prefill, then sample and decode. A chosen token is decoded only if logits after it are needed.
// Stop precedence: EOS, then token limit, then context limit (capacity).
// Errors: those of prefill, decode and sample, and token_out_of_range for eos_token; after an
// error the session and `rng` are as they were before the call.
template <class T>
[[nodiscard]] Result<Generation> generate(Session<T>& session, const GenerateRequest& request,
                                          SplitMix64& rng);

}  // namespace kvlens
