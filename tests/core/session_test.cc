// The decoder's calls: what each needs, what each changes, and that a refused call changes nothing.

#include "kvlens/session.h"

#include <gtest/gtest.h>

#include "support/expect.h"
#include "support/models.h"
#include "support/schedules.h"
#include "support/snapshot.h"
#include "support/taps.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::must;
using testing::same_content;
using testing::same_state;
using testing::snapshot;

template <class T>
class SessionTest : public ::testing::Test {
 protected:
  // Vocabulary of 7, room for 5 rows.
  std::unique_ptr<Session<T>> make(SessionOptions options = {}) {
    return testing::make_session<T>(model_, 5, options);
  }

  // Calls that must fail and leave `session_` as it was.
  template <class Context, class F>
  Context expect_refused(F call, ErrorCode code, std::string_view message = {}) {
    const auto before = snapshot(*session_);
    const auto context = expect_error<Context>(call(*session_), code, message);
    EXPECT_TRUE(same_state(snapshot(*session_), before));
    return context;
  }

  SplitMix64 rng_{61};
  std::shared_ptr<Model> model_ = testing::random_model(testing::tiny_config(), rng_);
  std::unique_ptr<Session<T>> session_ = make();
};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(SessionTest, ComputeTypes);

TYPED_TEST(SessionTest, PrefillRefusesAnEmptyPrompt) {
  this->template expect_refused<NoContext>([](auto& s) { return s.prefill({}); },
                                           ErrorCode::empty_prompt, "prompt has no tokens");
}

TYPED_TEST(SessionTest, PrefillRefusesMoreTokensThanTheCapacity) {
  const std::vector<std::uint32_t> six = {0, 1, 2, 3, 4, 5};
  const auto limit = this->template expect_refused<LimitContext>(
      [&](auto& s) { return s.prefill(six); }, ErrorCode::prompt_exceeds_capacity,
      "prompt has 6 tokens, cache capacity is 5");
  EXPECT_EQ(limit.value, 6U);
  EXPECT_EQ(limit.limit, 5U);
}

TYPED_TEST(SessionTest, PrefillRefusesAnIdOutsideTheVocabularyAndSaysWhere) {
  const std::vector<std::uint32_t> tokens = {0, 6, 7, 9};
  const auto token = this->template expect_refused<TokenContext>(
      [&](auto& s) { return s.prefill(tokens); }, ErrorCode::token_out_of_range,
      "token at position 2 has id 7, the vocabulary has 7 ids");
  EXPECT_EQ(token.position, 2U);
  EXPECT_EQ(token.id, 7U);
  EXPECT_EQ(token.vocab_size, 7U);
}

TYPED_TEST(SessionTest, PrefillNeedsAnEmptyCache) {
  const std::vector<std::uint32_t> tokens = {0, 1};
  must(this->session_->prefill(tokens));
  const auto count = this->template expect_refused<CountContext>(
      [&](auto& s) { return s.prefill(tokens); }, ErrorCode::not_empty,
      "prefill needs an empty cache, this one holds 2 rows");
  EXPECT_EQ(count.count, 2U);
}

TYPED_TEST(SessionTest, DecodeAndExtendNeedAPrefill) {
  const std::vector<std::uint32_t> tokens = {0, 1};
  this->template expect_refused<NoContext>([](auto& s) { return s.decode(0); },
                                           ErrorCode::not_prefilled);
  this->template expect_refused<NoContext>([&](auto& s) { return s.extend(tokens); },
                                           ErrorCode::not_prefilled);
  // Even when the token is bad too, or there is none.
  this->template expect_refused<NoContext>([](auto& s) { return s.decode(99); },
                                           ErrorCode::not_prefilled);
  this->template expect_refused<NoContext>([](auto& s) { return s.extend({}); },
                                           ErrorCode::not_prefilled);
}

TYPED_TEST(SessionTest, DecodeRefusesAnIdOutsideTheVocabulary) {
  const std::vector<std::uint32_t> tokens = {0, 1};
  must(this->session_->prefill(tokens));
  const auto token = this->template expect_refused<TokenContext>(
      [](auto& s) { return s.decode(7); }, ErrorCode::token_out_of_range);
  EXPECT_EQ(token.position, 0U);
  EXPECT_EQ(token.id, 7U);
  EXPECT_EQ(token.vocab_size, 7U);
}

TYPED_TEST(SessionTest, DecodePastCapacityFailsAndKeepsEveryRow) {
  const std::vector<std::uint32_t> full = {0, 1, 2, 3, 4};
  must(this->session_->prefill(full));
  const auto limit = this->template expect_refused<LimitContext>(
      [](auto& s) { return s.decode(1); }, ErrorCode::cache_full,
      "cache is full: it would hold 6 rows, capacity is 5");
  EXPECT_EQ(limit.value, 6U);
  EXPECT_EQ(limit.limit, 5U);
  // An id that no cache could take is named first.
  this->template expect_refused<TokenContext>([](auto& s) { return s.decode(7); },
                                              ErrorCode::token_out_of_range);
}

TYPED_TEST(SessionTest, ExtendTakesAllItsTokensOrNone) {
  const std::vector<std::uint32_t> prompt = {0, 1, 2};
  const std::vector<std::uint32_t> three = {3, 4, 5};
  const std::vector<std::uint32_t> second_bad = {3, 8};
  must(this->session_->prefill(prompt));
  const auto limit = this->template expect_refused<LimitContext>(
      [&](auto& s) { return s.extend(three); }, ErrorCode::cache_full);
  EXPECT_EQ(limit.value, 6U);
  const auto token = this->template expect_refused<TokenContext>(
      [&](auto& s) { return s.extend(second_bad); }, ErrorCode::token_out_of_range);
  EXPECT_EQ(token.position, 1U);
  this->template expect_refused<NoContext>([](auto& s) { return s.extend({}); },
                                           ErrorCode::empty_prompt);
}

TYPED_TEST(SessionTest, EachCallReportsPositionLengthsAndItsOwnWork) {
  auto& session = *this->session_;
  const std::vector<std::uint32_t> prompt = {0, 1};
  const std::vector<std::uint32_t> more = {3, 4};
  auto step = must(session.prefill(prompt));
  EXPECT_EQ(step.position, 1U);
  EXPECT_EQ(step.kv_len_before, 0U);
  EXPECT_EQ(step.kv_len, 2U);
  EXPECT_EQ(step.work.prefill_tokens, 2U);
  step = must(session.decode(2));
  EXPECT_EQ(step.position, 2U);
  EXPECT_EQ(step.kv_len_before, 2U);
  EXPECT_EQ(step.kv_len, 3U);
  EXPECT_EQ(step.work.prefill_tokens, 0U);
  EXPECT_EQ(step.work.decode_tokens, 1U);
  step = must(session.extend(more));
  EXPECT_EQ(step.position, 4U);
  EXPECT_EQ(step.kv_len_before, 3U);
  EXPECT_EQ(step.kv_len, 5U);
  EXPECT_EQ(step.work.decode_tokens, 2U);
  EXPECT_EQ(session.work().prefill_tokens, 2U);
  EXPECT_EQ(session.work().decode_tokens, 3U);
  EXPECT_EQ(std::vector<std::uint32_t>(session.tokens().begin(), session.tokens().end()),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(testing::same_bits(step.logits, testing::copy_of(session.logits())));
}

// tiny_config: 2 layers, 2 heads of 4 with KV heads of their own, d_model 6, d_ff 5, vocabulary 7.
TYPED_TEST(SessionTest, WorkOfAPrefillOfThreeIsCountedByHand) {
  const std::vector<std::uint32_t> prompt = {0, 1, 2};
  const Work work = must(this->session_->prefill(prompt)).work;
  EXPECT_EQ(work.token_forwards, 3U);
  EXPECT_EQ(work.prefill_tokens, 3U);
  EXPECT_EQ(work.decode_tokens, 0U);
  EXPECT_EQ(work.cache_appends, 2U * 3);
  EXPECT_EQ(work.qkv_projection_rows, 2U * 3 * 3);
  const std::uint64_t entries = 2U * 2 * (1 + 2 + 3);
  EXPECT_EQ(work.attention_score_values, entries);
  EXPECT_EQ(work.causal_score_values, entries);
  EXPECT_EQ(work.multiply_adds_qkv, 2U * 3 * (8 * 6 + 8 * 6 + 8 * 6));
  EXPECT_EQ(work.multiply_adds_scores, entries * 4);
  EXPECT_EQ(work.multiply_adds_mix, entries * 4);
  EXPECT_EQ(work.multiply_adds_output, 2U * 3 * 6 * 8);
  EXPECT_EQ(work.multiply_adds_ffn, 2U * 3 * 3 * 6 * 5);
  EXPECT_EQ(work.multiply_adds_logits, 7U * 6);
  EXPECT_EQ(work.kv_bytes_read, entries * 2 * 4 * sizeof(TypeParam));
  EXPECT_EQ(work.kv_bytes_written, 2U * 3 * 2 * 8 * sizeof(TypeParam));
  EXPECT_EQ(work.multiply_adds(), work.multiply_adds_qkv + work.multiply_adds_scores +
                                      work.multiply_adds_mix + work.multiply_adds_output +
                                      work.multiply_adds_ffn + work.multiply_adds_logits);
}

TYPED_TEST(SessionTest, AReplayCountsTheDenseGridAndTheProductsReallyComputed) {
  const std::vector<std::uint32_t> tokens = {0, 1, 2};
  const Work work = must(this->session_->replay(tokens)).work;
  EXPECT_EQ(work.token_forwards, 3U);
  EXPECT_EQ(work.prefill_tokens, 0U);
  EXPECT_EQ(work.decode_tokens, 0U);
  EXPECT_EQ(work.cache_appends, 0U);
  EXPECT_EQ(work.qkv_projection_rows, 18U);
  EXPECT_EQ(work.attention_score_values, 2U * 2 * 3 * 3);
  EXPECT_EQ(work.causal_score_values, 2U * 2 * (1 + 2 + 3));
  EXPECT_EQ(work.multiply_adds_logits, 7U * 6);
  EXPECT_EQ(must(this->session_->replay(tokens, true)).work.multiply_adds_logits, 3U * 7 * 6);
}

TYPED_TEST(SessionTest, ASlidingWindowOfTwoComputesTwoScoresARowButItsTensorHasTheLength) {
  Config config = testing::tiny_config();
  config.sliding_window = 2;
  const auto model = testing::random_model(config, this->rng_);
  const auto session = testing::make_session<TypeParam>(model);
  const std::vector<std::uint32_t> prompt = {0, 1, 2, 3};
  const Work work = must(session->prefill(prompt)).work;
  EXPECT_EQ(work.attention_score_values, 2U * 2 * (1 + 2 + 3 + 4));
  EXPECT_EQ(work.causal_score_values, 2U * 2 * (1 + 2 + 2 + 2));
}

TYPED_TEST(SessionTest, AReplayTouchesNothingOfTheSession) {
  const std::vector<std::uint32_t> prompt = {4, 4, 1};
  must(this->session_->prefill(prompt));
  const auto before = snapshot(*this->session_);
  const std::vector<std::uint32_t> other = {1, 2, 3, 4, 5, 6, 0, 1, 2};
  must(this->session_->replay(other));
  EXPECT_TRUE(same_state(snapshot(*this->session_), before));
}

TYPED_TEST(SessionTest, AReplayMayBeLongerThanTheCacheButNotThanTheModel) {
  std::vector<std::uint32_t> tokens(12, 3);
  EXPECT_TRUE(testing::succeeded(this->session_->replay(tokens)));
  tokens.push_back(3);
  const auto limit = this->template expect_refused<LimitContext>(
      [&](auto& s) { return s.replay(tokens); }, ErrorCode::prompt_exceeds_capacity,
      "prompt has 13 tokens, the model's max_seq_len is 12");
  EXPECT_EQ(limit.limit, 12U);
  this->template expect_refused<NoContext>([](auto& s) { return s.replay({}); },
                                           ErrorCode::empty_prompt);
  tokens = {1, 7};
  const auto token = this->template expect_refused<TokenContext>(
      [&](auto& s) { return s.replay(tokens); }, ErrorCode::token_out_of_range);
  EXPECT_EQ(token.position, 1U);
}

TYPED_TEST(SessionTest, ResetIsAFreshSessionInTheSameMemory) {
  const std::vector<std::uint32_t> first = {6, 2, 5, 5};
  const std::vector<std::uint32_t> second = {1, 3};
  must(this->session_->prefill(first));
  const auto& layer = this->session_->cache()->layers()[0];
  const std::byte* rows = layer.key_rows(0, 0);
  const std::uint64_t bytes_hash = layer.content_hash(4);
  this->session_->reset();
  EXPECT_TRUE(same_content(snapshot(*this->session_), snapshot(*this->make())));
  EXPECT_EQ(layer.key_rows(0, 0), rows);
  EXPECT_EQ(layer.content_hash(4), bytes_hash);
  const auto fresh = this->make();
  must(this->session_->prefill(second));
  must(fresh->prefill(second));
  EXPECT_TRUE(same_content(snapshot(*this->session_), snapshot(*fresh)));
}

TYPED_TEST(SessionTest, TruncateKeepsTheFirstRowsTouchesNoCounterAndDropsTheLogits) {
  const std::vector<std::uint32_t> prompt = {6, 2, 5, 1};
  must(this->session_->prefill(prompt));
  const Work work = this->session_->work();
  must(this->session_->truncate(2));
  EXPECT_EQ(this->session_->kv_len(), 2U);
  EXPECT_EQ(this->session_->tokens().size(), 2U);
  EXPECT_TRUE(this->session_->logits().empty());
  EXPECT_TRUE(testing::same_work(this->session_->work(), work));
}

TYPED_TEST(SessionTest, ExtendingAfterATruncateGivesTheBitsOfNeverHavingLeft) {
  const std::vector<std::uint32_t> prompt = {6, 2, 5, 1};
  const std::vector<std::uint32_t> wrong_end = {0, 0};
  const auto straight = this->make();
  must(straight->prefill(prompt));
  for (const std::size_t keep : {1U, 2U, 3U}) {
    this->session_->reset();
    must(this->session_->prefill(std::span(prompt).first(keep)));
    if (keep <= 3) must(this->session_->extend(wrong_end));
    must(this->session_->truncate(keep));
    must(this->session_->extend(std::span(prompt).subspan(keep)));
    EXPECT_TRUE(testing::same_bits(this->session_->logits(), testing::copy_of(straight->logits())));
    EXPECT_EQ(snapshot(*this->session_).hashes, snapshot(*straight).hashes);
    EXPECT_EQ(snapshot(*this->session_).tokens, snapshot(*straight).tokens);
  }
}

TYPED_TEST(SessionTest, TruncateRefusesNoneAndMoreThanThereAre) {
  const std::vector<std::uint32_t> prompt = {6, 2};
  this->template expect_refused<LimitContext>([](auto& s) { return s.truncate(0); },
                                              ErrorCode::invalid_length);
  must(this->session_->prefill(prompt));
  this->template expect_refused<LimitContext>([](auto& s) { return s.truncate(0); },
                                              ErrorCode::invalid_length);
  const auto limit = this->template expect_refused<LimitContext>(
      [](auto& s) { return s.truncate(3); }, ErrorCode::invalid_length);
  EXPECT_EQ(limit.value, 3U);
  EXPECT_EQ(limit.limit, 2U);
  EXPECT_TRUE(testing::succeeded(this->session_->truncate(2)));
}

TYPED_TEST(SessionTest, AdvanceCountsDownByChunksAndCommitsNothing) {
  const auto session = this->make({.chunk_rows = 2});
  const std::vector<std::uint32_t> prompt = {6, 2, 5, 1, 0};
  using Phase = Session<TypeParam>::Phase;
  must(session->begin(Phase::prefill, prompt));
  EXPECT_TRUE(session->call_in_progress());
  EXPECT_EQ(must(session->advance()), 3U);
  EXPECT_EQ(must(session->advance()), 1U);
  EXPECT_EQ(must(session->advance()), 0U);
  EXPECT_EQ(must(session->advance()), 0U);
  EXPECT_EQ(session->kv_len(), 0U);
  EXPECT_EQ(session->work(), Work{});
  must(session->finish());
  EXPECT_FALSE(session->call_in_progress());
  const auto plain = this->make();
  must(plain->prefill(prompt));
  EXPECT_TRUE(same_content(snapshot(*session), snapshot(*plain)));
}

TYPED_TEST(SessionTest, FinishComputesTheRowsStillToGo) {
  const auto session = this->make({.chunk_rows = 1});
  const auto plain = this->make();
  const std::vector<std::uint32_t> prompt = {6, 2, 5, 1};
  for (std::size_t advances = 0; advances <= 4; ++advances) {
    session->reset();
    must(session->begin(Session<TypeParam>::Phase::prefill, prompt));
    for (std::size_t i = 0; i < advances; ++i) must(session->advance());
    must(session->finish());
    plain->reset();
    must(plain->prefill(prompt));
    EXPECT_TRUE(same_content(snapshot(*session), snapshot(*plain)));
  }
}

TYPED_TEST(SessionTest, AnAbandonedCallLeavesNoTrace) {
  const auto session = this->make({.chunk_rows = 1});
  const std::vector<std::uint32_t> prompt = {6, 2};
  const std::vector<std::uint32_t> more = {5, 1};
  must(session->prefill(prompt));
  const auto before = snapshot(*session);
  for (std::size_t advances = 0; advances <= 2; ++advances) {
    must(session->begin(Session<TypeParam>::Phase::extend, more));
    for (std::size_t i = 0; i < advances; ++i) must(session->advance());
    session->abandon();
    EXPECT_TRUE(same_state(snapshot(*session), before));
  }
  session->abandon();
  EXPECT_TRUE(same_state(snapshot(*session), before));
  must(session->extend(more));
  const auto plain = this->make();
  must(plain->prefill(prompt));
  must(plain->extend(more));
  EXPECT_TRUE(same_content(snapshot(*session), snapshot(*plain)));
}

TYPED_TEST(SessionTest, WhileACallIsOpenEveryOtherCallOnTheCacheIsRefused) {
  using Phase = Session<TypeParam>::Phase;
  const std::vector<std::uint32_t> prompt = {6, 2};
  auto& session = *this->session_;
  must(session.prefill(prompt));
  const auto neighbour = must(Session<TypeParam>::bind(this->model_, session.cache()));
  must(session.begin(Phase::extend, prompt));
  must(session.advance());
  const auto before = snapshot(session);
  for (Session<TypeParam>* other : {&session, neighbour.get()}) {
    expect_error<NoContext>(other->prefill(prompt), ErrorCode::call_in_progress);
    expect_error<NoContext>(other->decode(1), ErrorCode::call_in_progress);
    expect_error<NoContext>(other->extend(prompt), ErrorCode::call_in_progress);
    expect_error<NoContext>(other->begin(Phase::extend, prompt), ErrorCode::call_in_progress);
    expect_error<NoContext>(other->replay(prompt), ErrorCode::call_in_progress);
    expect_error<NoContext>(other->truncate(1), ErrorCode::call_in_progress);
    EXPECT_TRUE(same_state(snapshot(session), before));
  }
  expect_error<NoContext>(neighbour->advance(), ErrorCode::no_call_in_progress);
  expect_error<NoContext>(neighbour->finish(), ErrorCode::no_call_in_progress);
  neighbour->abandon();
  EXPECT_TRUE(session.call_in_progress());
  must(session.finish());
  EXPECT_EQ(session.kv_len(), 4U);
  must(neighbour->decode(0));
  EXPECT_EQ(session.kv_len(), 5U);
}

TYPED_TEST(SessionTest, AdvanceAndFinishNeedAnOpenCall) {
  this->template expect_refused<NoContext>([](auto& s) { return s.advance(); },
                                           ErrorCode::no_call_in_progress);
  this->template expect_refused<NoContext>([](auto& s) { return s.finish(); },
                                           ErrorCode::no_call_in_progress);
}

TYPED_TEST(SessionTest, AFailedAdvanceClosesTheCall) {
  const std::vector<std::uint32_t> prompt = {6, 2};
  auto& session = *this->session_;
  const auto before = snapshot(session);
  must(session.begin(Session<TypeParam>::Phase::prefill, prompt));
  testing::FaultTap<TypeParam> tap(5);
  EXPECT_EQ(session.advance(&tap).error().code, ErrorCode::interrupted);
  EXPECT_FALSE(session.call_in_progress());
  EXPECT_TRUE(same_state(snapshot(session), before));
  EXPECT_TRUE(testing::succeeded(session.prefill(prompt)));
}

TYPED_TEST(SessionTest, ResetAbandonsAnOpenCall) {
  const std::vector<std::uint32_t> prompt = {6, 2};
  auto& session = *this->session_;
  must(session.begin(Session<TypeParam>::Phase::prefill, prompt));
  must(session.advance());
  session.reset();
  EXPECT_FALSE(session.call_in_progress());
  EXPECT_TRUE(testing::succeeded(session.prefill(prompt)));
}

TYPED_TEST(SessionTest, ASessionThatEndsWithAnOpenCallFreesTheCache) {
  const std::vector<std::uint32_t> prompt = {6, 2};
  const auto cache = this->session_->cache();
  must(this->session_->begin(Session<TypeParam>::Phase::prefill, prompt));
  this->session_.reset();
  const auto next = must(Session<TypeParam>::bind(this->model_, cache));
  EXPECT_TRUE(testing::succeeded(next->prefill(prompt)));
}

// Somebody who holds the cache may change it behind the session's back.
TYPED_TEST(SessionTest, RowsAreNotCommittedToACacheThatChangedUnderWay) {
  using Phase = Session<TypeParam>::Phase;
  const std::vector<std::uint32_t> prompt = {6, 2, 4};
  const std::vector<std::uint32_t> more = {1, 3};
  // With a row still to compute, and with nothing left but the commit.
  for (const auto& [layer, advances] : {std::pair{0U, 1}, {1U, 1}, {0U, 2}, {1U, 2}}) {
    const auto session = this->make({.chunk_rows = 1});
    must(session->prefill(prompt));
    const Work work = session->work();
    must(session->begin(Phase::extend, more));
    for (int i = 0; i < advances; ++i) must(session->advance());
    must(session->cache()->layers()[layer].truncate(2));
    const auto context = expect_error<MismatchContext>(session->finish(), ErrorCode::cache_changed);
    EXPECT_EQ(context.expected, 3U);
    EXPECT_EQ(context.actual, 2U);
    EXPECT_FALSE(session->call_in_progress());
    EXPECT_EQ(session->cache()->layers()[layer].len(), 2U);
    EXPECT_EQ(session->cache()->layers()[1 - layer].len(), 3U);
    EXPECT_TRUE(testing::same_work(session->work(), work));
  }
}

TYPED_TEST(SessionTest, RowsAreNotCommittedToOtherStorage) {
  using Phase = Session<TypeParam>::Phase;
  const std::vector<std::uint32_t> prompt = {6, 2, 4};
  must(this->session_->begin(Phase::prefill, prompt));
  must(this->session_->advance());
  auto& layer = this->session_->cache()->layers()[1];
  layer = must(LayerKvCache<TypeParam>::create(layer.geometry()));
  expect_error<MismatchContext>(this->session_->finish(), ErrorCode::cache_changed);
  EXPECT_EQ(this->session_->kv_len(), 0U);
  EXPECT_EQ(this->session_->work(), Work{});
}

TYPED_TEST(SessionTest, ALayerThatWasChangedBetweenCallsIsNoticedBeforeAnyWork) {
  const std::vector<std::uint32_t> prompt = {6, 2, 4};
  must(this->session_->prefill(prompt));
  const Work work = this->session_->work();
  must(this->session_->cache()->layers()[1].truncate(1));
  expect_error<MismatchContext>(this->session_->decode(1), ErrorCode::cache_changed);
  must(this->session_->cache()->layers()[0].truncate(1));
  auto& layer = this->session_->cache()->layers()[1];
  layer = must(LayerKvCache<TypeParam>::create(
      {.batch = 1, .n_kv_heads = 1, .head_dim = 2, .capacity = 1, .max_seq_len = 1, .rope = {}}));
  must(layer.append(std::vector<TypeParam>{1, 2}, std::vector<TypeParam>{1, 2}));
  expect_error<MismatchContext>(this->session_->decode(1), ErrorCode::cache_changed);
  EXPECT_TRUE(testing::same_work(this->session_->work(), work));
}

}  // namespace
}  // namespace kvlens
