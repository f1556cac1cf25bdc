// A replay in steps is the replay at once, bit for bit, and giving it up leaves nothing behind.

#include <gtest/gtest.h>

#include "kvlens/memory.h"
#include "kvlens/session.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/schedules.h"
#include "support/snapshot.h"
#include "support/taps.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::must;
using testing::same_bits;
using testing::same_state;
using testing::snapshot;

template <class T>
class StepwiseReplayTest : public ::testing::Test {
 protected:
  // Two layers, vocabulary of 7.
  std::unique_ptr<Session<T>> make(std::size_t chunk_rows) {
    return testing::make_session<T>(model_, 12, {.chunk_rows = chunk_rows});
  }

  SplitMix64 rng_{71};
  std::shared_ptr<Model> model_ = testing::random_model(testing::tiny_config(), rng_);
  std::vector<std::uint32_t> tokens_ = {3, 0, 6, 6, 1};
};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(StepwiseReplayTest, ComputeTypes);

template <class T>
::testing::AssertionResult same_replay(const Replay<T>& actual, const Replay<T>& expected) {
  if (auto same = same_bits<T>(actual.logits.span(), expected.logits.span()); !same) return same;
  return testing::same_work(actual.work, expected.work);
}

// The embedding, each of two layers and the head, in chunks of two of five rows.
TYPED_TEST(StepwiseReplayTest, EachStepIsOneChunkOfOneLayer) {
  const auto session = this->make(2);
  for (const auto& [all_logits, n_steps] :
       {std::pair{true, 3U * 4}, std::pair{false, 3U * 3 + 1}}) {
    auto replay = must(session->begin_replay(this->tokens_, all_logits));
    EXPECT_EQ(replay.n_steps(), n_steps);
    for (std::size_t left = n_steps; left-- > 0;) {
      testing::SiteLog<TypeParam> log;
      EXPECT_EQ(must(replay.advance(&log)), left);
      ASSERT_FALSE(log.entries.empty());
      const StageSite first = log.entries.front().site;
      for (const auto& [site, values] : log.entries) {
        EXPECT_EQ(site.layer, first.layer);
        EXPECT_LT(site.position - first.position, 2U);
      }
    }
    EXPECT_EQ(must(replay.advance()), 0U);
  }
}

// Whatever the session does between the steps.
TYPED_TEST(StepwiseReplayTest, EqualsTheReplayAtOnceByBytesCountersAndSites) {
  using T = TypeParam;
  for (const auto& [name, config] : testing::config_variants()) {
    const auto model = testing::random_model(config, this->rng_);
    const auto tokens = testing::random_tokens(this->rng_, config.max_seq_len, config.vocab_size);
    for (const std::size_t chunk_rows : {1U, 3U, 32U}) {
      for (const bool all_logits : {false, true}) {
        SCOPED_TRACE(name + ", chunk_rows " + std::to_string(chunk_rows));
        const auto session = testing::make_session<T>(
            model, config.max_seq_len,
            {.chunk_rows = chunk_rows, .pool = testing::make_pool(chunk_rows % 3)});
        testing::SiteLog<T> expected_log;
        const auto expected = must(session->replay(tokens, all_logits, &expected_log));
        testing::SiteLog<T> log;
        auto replay = must(session->begin_replay(tokens, all_logits));
        for (std::size_t step = 0; must(replay.advance(&log)) > 0; ++step) {
          if (step % 5 == 0) session->reset();
          if (session->kv_len() == 0) {
            must(session->prefill(std::span(tokens).first(2)));
          } else {
            must(session->decode(tokens[step % tokens.size()]));
          }
        }
        EXPECT_TRUE(same_replay(must(replay.finish(&log)), expected));
        ASSERT_EQ(log.entries.size(), expected_log.entries.size());
        for (std::size_t i = 0; i < log.entries.size(); ++i) {
          ASSERT_EQ(testing::describe(log.entries[i].site),
                    testing::describe(expected_log.entries[i].site));
          ASSERT_TRUE(same_bits<T>(log.entries[i].values, expected_log.entries[i].values));
        }
      }
    }
  }
}

TYPED_TEST(StepwiseReplayTest, FinishComputesWhatIsLeft) {
  const auto session = this->make(2);
  const auto expected = must(session->replay(this->tokens_));
  for (std::size_t steps = 0; steps <= 10; ++steps) {
    auto replay = must(session->begin_replay(this->tokens_));
    for (std::size_t step = 0; step < steps; ++step) must(replay.advance());
    EXPECT_TRUE(same_replay(must(replay.finish()), expected)) << "after " << steps << " steps";
  }
}

TYPED_TEST(StepwiseReplayTest, GivingUpAfterAnyStepChangesNothingAndFreesItsMemory) {
  const auto session = this->make(2);
  must(session->prefill(this->tokens_));
  const auto before = snapshot(*session);
  const std::uint64_t bytes = memory::live_bytes();
  for (std::size_t steps = 0; steps <= 10; ++steps) {
    {
      auto replay = must(session->begin_replay(this->tokens_));
      for (std::size_t step = 0; step < steps; ++step) must(replay.advance());
      EXPECT_GT(memory::live_bytes(), bytes);
      EXPECT_TRUE(same_state(snapshot(*session), before));
    }
    EXPECT_EQ(memory::live_bytes(), bytes);
    EXPECT_TRUE(same_state(snapshot(*session), before));
  }
}

TYPED_TEST(StepwiseReplayTest, AReplayThatHasEndedGoesNoFurther) {
  const auto session = this->make(2);
  const auto expect_ended = [](auto& replay) {
    expect_error<NoContext>(replay.advance(), ErrorCode::no_call_in_progress,
                            "the replay has ended");
    expect_error<NoContext>(replay.finish(), ErrorCode::no_call_in_progress,
                            "the replay has ended");
    EXPECT_EQ(replay.n_steps(), 0U);
  };
  auto finished = must(session->begin_replay(this->tokens_));
  must(finished.finish());
  expect_ended(finished);

  auto failed = must(session->begin_replay(this->tokens_));
  testing::FaultTap<TypeParam> tap(20);
  const auto error = failed.finish(&tap);
  expect_error<SiteContext>(error, ErrorCode::interrupted);
  expect_ended(failed);
}

TYPED_TEST(StepwiseReplayTest, BeginRefusesWhatReplayRefuses) {
  const auto session = this->make(2);
  const std::vector<std::uint32_t> outside = {1, 7};
  const std::vector<std::uint32_t> long_tokens(13, 1);
  expect_error<NoContext>(session->begin_replay({}), ErrorCode::empty_prompt);
  expect_error<TokenContext>(session->begin_replay(outside), ErrorCode::token_out_of_range);
  expect_error<LimitContext>(session->begin_replay(long_tokens),
                             ErrorCode::prompt_exceeds_capacity);
  must(session->begin(Session<TypeParam>::Phase::prefill, this->tokens_));
  expect_error<NoContext>(session->begin_replay(this->tokens_), ErrorCode::call_in_progress);
}

}  // namespace
}  // namespace kvlens
