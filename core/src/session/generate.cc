#include "kvlens/generate.h"

#include <algorithm>
#include <string>

#include "base/argument_checks.h"
#include "base/try.h"

namespace kvlens {
namespace {

Result<void> check_request(const GenerateRequest& request, const Config& config,
                           std::size_t capacity) {
  KVLENS_CHECK(validate(request.sampling));
  if (request.eos_token) {
    KVLENS_CHECK(check_token("eos_token", 0, *request.eos_token, config.vocab_size));
  }
  KVLENS_CHECK(check_prompt_size(request.prompt.size(), capacity));
  return check_tokens(request.prompt, config.vocab_size);
}

// The loop that both ways share. `logits_after(prefix)` gives the logits after the whole prefix, of
// which the last token is new (or all are, the first time), and adds its work to `generation`.
template <class T, class F>
Result<Generation> run(const GenerateRequest& request, std::size_t capacity, SplitMix64& rng,
                       F&& logits_after) {
  Generation generation{.tokens = {}, .stop = StopReason::token_limit, .steps = {}, .work = {}};
  if (request.max_new_tokens == 0) return generation;
  std::vector<std::uint32_t> prefix(request.prompt.begin(), request.prompt.end());
  prefix.reserve(capacity);
  SplitMix64 drawing = rng;
  while (true) {
    KVLENS_TRY(const std::span<const T> logits, logits_after(prefix, generation.work));
    KVLENS_TRY(const Draw draw, sample(logits, request.sampling, drawing, prefix));
    generation.tokens.push_back(draw.token);
    generation.steps.push_back({.prefix_length = prefix.size(), .draw = draw});
    const bool is_eos = request.eos_token && draw.token == *request.eos_token;
    const bool budget_spent = generation.tokens.size() == request.max_new_tokens;
    if (is_eos || budget_spent || prefix.size() == capacity) {
      generation.stop = is_eos         ? StopReason::eos
                        : budget_spent ? StopReason::token_limit
                                       : StopReason::context_limit;
      rng = drawing;
      return generation;
    }
    prefix.push_back(draw.token);
  }
}

}  // namespace

template <class T>
Result<Generation> generate(Session<T>& session, const GenerateRequest& request, SplitMix64& rng) {
  KVLENS_CHECK(check_request(request, session.model()->config(), session.capacity()));
  if (session.call_in_progress()) return call_in_progress_error();
  if (session.kv_len() != 0) {
    return fail(ErrorCode::not_empty, CountContext{session.kv_len()},
                "generation starts with a prefill, which needs an empty cache; this one holds " +
                    std::to_string(session.kv_len()) + " rows");
  }
  KVLENS_TRY(const Savepoint<T> before, session.savepoint());
  auto generation = run<T>(
      request, session.capacity(), rng,
      [&](const std::vector<std::uint32_t>& prefix, Work& work) -> Result<std::span<const T>> {
        auto step = session.kv_len() == 0 ? session.prefill(prefix) : session.decode(prefix.back());
        if (!step) return std::unexpected(std::move(step).error());
        KVLENS_TRY(work, checked_add(work, step->work));
        return step->logits;
      });
  if (!generation) KVLENS_CHECK(session.rollback(before));
  return generation;
}

template <class T>
Result<Generation> generate_uncached(const Session<T>& session, const GenerateRequest& request,
                                     SplitMix64& rng) {
  KVLENS_CHECK(check_request(request, session.model()->config(), session.capacity()));
  Replay<T> replay{};
  return run<T>(
      request, session.capacity(), rng,
      [&](const std::vector<std::uint32_t>& prefix, Work& work) -> Result<std::span<const T>> {
        KVLENS_TRY(replay, session.replay(prefix));
        KVLENS_TRY(work, checked_add(work, replay.work));
        return std::span<const T>(replay.logits.span());
      });
}

template Result<Generation> generate<float>(Session<float>&, const GenerateRequest&, SplitMix64&);
template Result<Generation> generate<double>(Session<double>&, const GenerateRequest&, SplitMix64&);
template Result<Generation> generate_uncached<float>(const Session<float>&, const GenerateRequest&,
                                                     SplitMix64&);
template Result<Generation> generate_uncached<double>(const Session<double>&,
                                                      const GenerateRequest&, SplitMix64&);

}  // namespace kvlens
