// Generation without a cache: a complete-prefix replay for every token. What the cache saves is
// measured against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kvlens/generate.h"
#include "kvlens/session.h"

namespace kvlens::testing {

template <class T>
Result<Generation> generate_uncached(const Session<T>& session, const GenerateRequest& request,
                                     SplitMix64& rng) {
  Generation generation{.tokens = {}, .stop = StopReason::token_limit, .steps = {}, .work = {}};
  std::vector<std::uint32_t> prefix(request.prompt.begin(), request.prompt.end());
  while (generation.tokens.size() < request.max_new_tokens) {
    auto replay = session.replay(prefix);
    if (!replay) return std::unexpected(replay.error());
    auto work = checked_add(generation.work, replay->work);
    if (!work) return std::unexpected(work.error());
    generation.work = *work;
    auto draw = sample(std::as_const(replay->logits).span(), request.sampling, rng, prefix);
    if (!draw) return std::unexpected(draw.error());
    generation.tokens.push_back(draw->token);
    generation.steps.push_back({.prefix_length = prefix.size(), .draw = *draw});
    if (draw->token == request.eos_token) {
      generation.stop = StopReason::eos;
      break;
    }
    if (generation.tokens.size() == request.max_new_tokens) break;
    if (prefix.size() == session.capacity()) {
      generation.stop = StopReason::context_limit;
      break;
    }
    prefix.push_back(draw->token);
  }
  return generation;
}

}  // namespace kvlens::testing
