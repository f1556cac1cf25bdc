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

template <class T>
Result<Generation> run(Session<T>& session, const GenerateRequest& request, SplitMix64& rng) {
  Generation generation{.tokens = {}, .stop = StopReason::token_limit, .steps = {}, .work = {}};
  if (request.max_new_tokens == 0) return generation;
  std::vector<std::uint32_t> prefix(request.prompt.begin(), request.prompt.end());
  prefix.reserve(session.capacity());
  SplitMix64 drawing = rng;
  KVLENS_TRY(Step<T> step, session.prefill(prefix));
  while (true) {
    KVLENS_TRY(generation.work, checked_add(generation.work, step.work));
    KVLENS_TRY(const Draw draw, sample(step.logits, request.sampling, drawing, prefix));
    generation.tokens.push_back(draw.token);
    generation.steps.push_back({.prefix_length = prefix.size(), .draw = draw});
    const bool is_eos = request.eos_token && draw.token == *request.eos_token;
    const bool budget_spent = generation.tokens.size() == request.max_new_tokens;
    if (is_eos || budget_spent || prefix.size() == session.capacity()) {
      generation.stop = is_eos         ? StopReason::eos
                        : budget_spent ? StopReason::token_limit
                                       : StopReason::context_limit;
      rng = drawing;
      return generation;
    }
    prefix.push_back(draw.token);
    KVLENS_TRY(step, session.decode(draw.token));
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
  auto generation = run(session, request, rng);
  if (!generation) KVLENS_CHECK(session.rollback(before));
  return generation;
}

template Result<Generation> generate<float>(Session<float>&, const GenerateRequest&, SplitMix64&);
template Result<Generation> generate<double>(Session<double>&, const GenerateRequest&, SplitMix64&);

}  // namespace kvlens
