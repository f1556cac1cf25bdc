// Generation: when it stops, what it decodes, and that a refused or failed run changes nothing.

#include "kvlens/generate.h"

#include <gtest/gtest.h>

#include "support/expect.h"
#include "support/models.h"
#include "support/snapshot.h"
#include "support/uncached.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::generate_uncached;
using testing::must;
using testing::same_state;
using testing::snapshot;

template <class T>
class GenerateTest : public ::testing::Test {
 protected:
  // A run that is made with the cache and without, which must agree.
  Generation run(const GenerateRequest& request, std::uint64_t seed = 5) {
    session_->reset();
    SplitMix64 cached_rng(seed);
    SplitMix64 uncached_rng(seed);
    const Generation uncached = must(generate_uncached(*session_, request, uncached_rng));
    EXPECT_EQ(session_->kv_len(), 0U);
    Generation cached = must(generate(*session_, request, cached_rng));
    EXPECT_EQ(cached.tokens, uncached.tokens);
    EXPECT_EQ(cached.stop, uncached.stop);
    EXPECT_EQ(cached_rng.state(), uncached_rng.state());
    EXPECT_EQ(cached.steps.size(), uncached.steps.size());
    for (std::size_t i = 0; i < cached.steps.size(); ++i) {
      EXPECT_EQ(cached.steps[i].prefix_length, uncached.steps[i].prefix_length);
      EXPECT_EQ(cached.steps[i].draw.interval_start, uncached.steps[i].draw.interval_start);
      EXPECT_EQ(cached.steps[i].draw.interval_end, uncached.steps[i].draw.interval_end);
    }
    return cached;
  }
  // The call must fail and change neither session nor RNG.
  template <class Context>
  Context expect_refused(const GenerateRequest& request, ErrorCode code) {
    const auto before = snapshot(*session_);
    SplitMix64 rng(5);
    const auto context = expect_error<Context>(generate(*session_, request, rng), code);
    EXPECT_EQ(rng.state(), 5U);
    EXPECT_TRUE(same_state(snapshot(*session_), before));
    return context;
  }

  static constexpr std::size_t capacity = 6;
  std::vector<std::uint32_t> prompt_ = {4, 1};
  SplitMix64 rng_{81};
  std::shared_ptr<Model> model_ = testing::random_model(testing::tiny_config(), rng_);
  std::unique_ptr<Session<T>> session_ = testing::make_session<T>(model_, capacity);
};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(GenerateTest, ComputeTypes);

TYPED_TEST(GenerateTest, ABudgetOfZeroDoesNoWork) {
  for (const bool greedy : {true, false}) {
    const Generation done =
        this->run({.prompt = this->prompt_, .max_new_tokens = 0, .sampling = {.greedy = greedy}});
    EXPECT_TRUE(done.tokens.empty());
    EXPECT_TRUE(done.steps.empty());
    EXPECT_EQ(done.stop, StopReason::token_limit);
    EXPECT_EQ(done.work, Work{});
    EXPECT_EQ(this->session_->kv_len(), 0U);
    EXPECT_EQ(this->session_->work(), Work{});
  }
}

TYPED_TEST(GenerateTest, ABudgetOfOneNeedsNoDecode) {
  const Generation done = this->run({.prompt = this->prompt_, .max_new_tokens = 1, .sampling = {}});
  EXPECT_EQ(done.tokens.size(), 1U);
  EXPECT_EQ(done.stop, StopReason::token_limit);
  EXPECT_EQ(done.work.prefill_tokens, 2U);
  EXPECT_EQ(done.work.decode_tokens, 0U);
  EXPECT_EQ(this->session_->kv_len(), 2U);
}

TYPED_TEST(GenerateTest, TheLastTokenOfABudgetIsNotDecoded) {
  const Generation done = this->run({.prompt = this->prompt_, .max_new_tokens = 3, .sampling = {}});
  EXPECT_EQ(done.tokens.size(), 3U);
  EXPECT_EQ(done.work.decode_tokens, 2U);
  EXPECT_EQ(this->session_->kv_len(), 4U);
  std::vector<std::size_t> lengths;
  for (const GenerateStep& step : done.steps) lengths.push_back(step.prefix_length);
  EXPECT_EQ(lengths, (std::vector<std::size_t>{2, 3, 4}));
}

TYPED_TEST(GenerateTest, AFullCacheGivesOneMoreTokenAndStopsAtTheContext) {
  const Generation done =
      this->run({.prompt = this->prompt_, .max_new_tokens = 100, .sampling = {}});
  EXPECT_EQ(done.stop, StopReason::context_limit);
  EXPECT_EQ(done.tokens.size(), this->capacity - 2 + 1);
  EXPECT_EQ(this->session_->kv_len(), this->capacity);
}

TYPED_TEST(GenerateTest, APromptThatFillsTheCacheStillGivesOneToken) {
  const std::vector<std::uint32_t> full(this->capacity, 3);
  const Generation done = this->run({.prompt = full, .max_new_tokens = 2, .sampling = {}});
  EXPECT_EQ(done.tokens.size(), 1U);
  EXPECT_EQ(done.stop, StopReason::context_limit);
}

TYPED_TEST(GenerateTest, EosStopsAndIsTheLastTokenButIsNotDecoded) {
  const Generation free_run =
      this->run({.prompt = this->prompt_, .max_new_tokens = 100, .sampling = {}});
  const std::uint32_t eos = free_run.tokens[0];
  const Generation done =
      this->run({.prompt = this->prompt_, .max_new_tokens = 100, .eos_token = eos, .sampling = {}});
  EXPECT_EQ(done.tokens, std::vector<std::uint32_t>{eos});
  EXPECT_EQ(done.stop, StopReason::eos);
  EXPECT_EQ(done.work.decode_tokens, 0U);
  EXPECT_EQ(this->session_->kv_len(), 2U);
}

TYPED_TEST(GenerateTest, EosGoesBeforeTheTokenLimitAndThatBeforeTheContextLimit) {
  const std::vector<std::uint32_t> full(this->capacity, 3);
  const GenerateRequest all_three{.prompt = full, .max_new_tokens = 1, .sampling = {}};
  const Generation limited = this->run(all_three);
  EXPECT_EQ(limited.stop, StopReason::token_limit);
  GenerateRequest with_eos = all_three;
  with_eos.eos_token = limited.tokens[0];
  EXPECT_EQ(this->run(with_eos).stop, StopReason::eos);
  GenerateRequest more = all_three;
  more.max_new_tokens = 2;
  EXPECT_EQ(this->run(more).stop, StopReason::context_limit);
}

TYPED_TEST(GenerateTest, WorkIsThatOfThePrefillAndTheDecodes) {
  const Generation done =
      this->run({.prompt = this->prompt_, .max_new_tokens = 4, .sampling = {.greedy = false}});
  const auto by_hand = testing::make_session<TypeParam>(this->model_, this->capacity);
  must(by_hand->prefill(this->prompt_));
  for (std::size_t i = 0; i + 1 < done.tokens.size(); ++i) must(by_hand->decode(done.tokens[i]));
  EXPECT_TRUE(testing::same_work(done.work, by_hand->work()));
  EXPECT_TRUE(testing::same_content(snapshot(*this->session_), snapshot(*by_hand)));
}

TYPED_TEST(GenerateTest, TheRepetitionPenaltySeesPromptAndNewTokens) {
  const GenerateRequest request{.prompt = this->prompt_,
                                .max_new_tokens = 4,
                                .sampling = {.greedy = false, .repetition_penalty = 1.5}};
  const Generation done = this->run(request);
  const auto by_hand = testing::make_session<TypeParam>(this->model_, this->capacity);
  SplitMix64 rng(5);
  std::vector<std::uint32_t> seen = this->prompt_;
  must(by_hand->prefill(this->prompt_));
  for (std::size_t i = 0; i < done.tokens.size(); ++i) {
    const Draw draw = must(sample(by_hand->logits(), request.sampling, rng, seen));
    EXPECT_EQ(draw.token, done.tokens[i]);
    EXPECT_EQ(draw.interval_end, done.steps[i].draw.interval_end);
    seen.push_back(draw.token);
    if (i + 1 < done.tokens.size()) must(by_hand->decode(draw.token));
  }
}

TYPED_TEST(GenerateTest, InvalidRequestsAreRefusedBeforeAnyWork) {
  const std::vector<std::uint32_t> too_long(this->capacity + 1, 0);
  const std::vector<std::uint32_t> bad_id = {0, 7};
  const auto& prompt = this->prompt_;
  this->template expect_refused<NoContext>({.prompt = {}, .max_new_tokens = 3, .sampling = {}},
                                           ErrorCode::empty_prompt);
  const auto limit = this->template expect_refused<LimitContext>(
      {.prompt = too_long, .max_new_tokens = 3, .sampling = {}},
      ErrorCode::prompt_exceeds_capacity);
  EXPECT_EQ(limit.value, 7U);
  EXPECT_EQ(limit.limit, 6U);
  const auto token = this->template expect_refused<TokenContext>(
      {.prompt = bad_id, .max_new_tokens = 3, .sampling = {}}, ErrorCode::token_out_of_range);
  EXPECT_EQ(token.position, 1U);
  const auto eos = this->template expect_refused<TokenContext>(
      {.prompt = prompt, .max_new_tokens = 3, .eos_token = 7, .sampling = {}},
      ErrorCode::token_out_of_range);
  EXPECT_EQ(eos.id, 7U);
  EXPECT_EQ(eos.vocab_size, 7U);
  const auto field = this->template expect_refused<FieldContext>(
      {.prompt = prompt, .max_new_tokens = 3, .sampling = {.greedy = false, .temperature = 0}},
      ErrorCode::invalid_sampling);
  EXPECT_EQ(field.field, "temperature");
}

TYPED_TEST(GenerateTest, AnInvalidRequestIsInvalidWhateverItsBudget) {
  this->template expect_refused<NoContext>({.prompt = {}, .max_new_tokens = 0, .sampling = {}},
                                           ErrorCode::empty_prompt);
  this->template expect_refused<FieldContext>(
      {.prompt = this->prompt_, .max_new_tokens = 0, .sampling = {.greedy = false, .top_p = 2}},
      ErrorCode::invalid_sampling);
}

TYPED_TEST(GenerateTest, NeedsAnEmptyCacheAndNoOpenCall) {
  SplitMix64 rng(5);
  const GenerateRequest request{.prompt = this->prompt_, .max_new_tokens = 3, .sampling = {}};
  auto& session = *this->session_;
  must(session.begin(Session<TypeParam>::Phase::prefill, this->prompt_));
  expect_error<NoContext>(generate(session, request, rng), ErrorCode::call_in_progress);
  EXPECT_TRUE(session.call_in_progress());
  must(session.finish());
  const auto before = snapshot(session);
  const auto count =
      expect_error<CountContext>(generate(session, request, rng), ErrorCode::not_empty);
  EXPECT_EQ(count.count, 2U);
  EXPECT_TRUE(same_state(snapshot(session), before));
  EXPECT_EQ(rng.state(), 5U);
}

// Token 2 is embedded as a number that float cannot hold: a run fails once it decodes that token.
TEST(GenerateFailureTest, AFailureUnderWayTakesBackEveryStepAndTheRng) {
  Config config = testing::tiny_config();
  config.tied_embedding = false;
  SplitMix64 make(82);
  const auto model = testing::random_model(config, make);
  std::vector<double> embedding(config.vocab_size * config.d_model, 0.25);
  for (std::size_t i = 0; i < config.d_model; ++i) embedding[2 * config.d_model + i] = 1e300;
  must(model->update_parameter("token_embedding", DType::f64,
                               testing::encode(embedding, DType::f64)));
  const auto session = testing::make_session<float>(model, 6);
  const std::vector<std::uint32_t> prompt = {0, 1};
  const auto before = snapshot(*session);
  // At this temperature every token comes up sooner or later.
  const GenerateRequest request{
      .prompt = prompt, .max_new_tokens = 6, .sampling = {.greedy = false, .temperature = 50}};
  std::size_t failures = 0;
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    SplitMix64 rng(seed);
    session->reset();
    const auto result = generate(*session, request, rng);
    if (result) continue;
    ++failures;
    EXPECT_EQ(result.error().code, ErrorCode::non_finite_value);
    EXPECT_EQ(rng.state(), seed);
    ASSERT_TRUE(same_state(snapshot(*session), before));
  }
  EXPECT_GT(failures, 10U);
}

}  // namespace
}  // namespace kvlens
