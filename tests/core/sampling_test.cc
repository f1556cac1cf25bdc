// Choosing a token: ranking, cuts, the draw, and what an invalid request must not do.

#include "kvlens/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "ops/elementary.h"
#include "support/expect.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::must;

// Logits whose softmax weights relative to the largest are 1, 1/2, 1/4, 1/4 for ids 2, 0, 1, 3.
const std::vector<double> halves = {-std::numbers::ln2, -2 * std::numbers::ln2, 0.0,
                                    -2 * std::numbers::ln2};

// An RNG whose next unit draw is the first of its stream to lie in [low, high).
SplitMix64 rng_that_draws(double low, double high) {
  SplitMix64 rng(1);
  for (;;) {
    SplitMix64 ahead = rng;
    const double unit = ahead.unit();
    if (low <= unit && unit < high) return rng;
    rng = ahead;
  }
}

Draw draw_in(double low, double high, const SamplingConfig& config,
             std::span<const double> logits = halves, std::span<const std::uint32_t> recent = {}) {
  SplitMix64 rng = rng_that_draws(low, high);
  return must(sample(logits, config, rng, recent));
}

constexpr double exact = 1e-15;

TEST(SamplingTest, SplitMix64FollowsItsPublishedSequence) {
  // First outputs for seed 1234567, from the authors' reference program (prng.di.unimi.it).
  SplitMix64 rng(1234567);
  EXPECT_EQ(rng.next(), 6457827717110365317U);
  EXPECT_EQ(rng.next(), 3203168211198807973U);
  EXPECT_EQ(rng.next(), 9817491932198370423U);
  EXPECT_EQ(rng.next(), 4593380528125082431U);
  EXPECT_EQ(rng.next(), 16408922859458223821U);
}

TEST(SamplingTest, GreedyTakesTheLargestWithoutADraw) {
  SplitMix64 rng(9);
  const Draw draw = must(sample(std::span<const double>(halves), {}, rng));
  EXPECT_EQ(draw.token, 2U);
  EXPECT_EQ(draw.unit_draw, std::nullopt);
  EXPECT_EQ(draw.interval_start, 0.0);
  EXPECT_EQ(draw.interval_end, 1.0);
  EXPECT_EQ(draw.probability, 1.0);
  EXPECT_EQ(draw.candidates, 1U);
  EXPECT_EQ(rng.state(), 9U);
}

TEST(SamplingTest, GreedyBreaksTiesByTheLowerId) {
  SplitMix64 rng(9);
  const std::vector<float> logits = {-1, 5, 0, 5, 5};
  EXPECT_EQ(must(sample(std::span<const float>(logits), {}, rng)).token, 1U);
}

TEST(SamplingTest, CandidatesShareTheIntervalInOrderOfId) {
  const SamplingConfig config{.greedy = false};
  const std::vector<double> bounds = {0.0, 0.25, 0.375, 0.875, 1.0};
  for (std::uint32_t token = 0; token < 4; ++token) {
    const Draw draw = draw_in(bounds[token] + 0.001, bounds[token + 1] - 0.001, config);
    EXPECT_EQ(draw.token, token);
    EXPECT_NEAR(draw.interval_start, bounds[token], exact);
    EXPECT_NEAR(draw.interval_end, bounds[token + 1], exact);
    EXPECT_EQ(draw.probability, draw.interval_end - draw.interval_start);
    EXPECT_LE(draw.interval_start, *draw.unit_draw);
    EXPECT_LT(*draw.unit_draw, draw.interval_end);
    EXPECT_EQ(draw.candidates, 4U);
  }
}

// SplitMix64's output function is invertible: these states precede the outputs named beside them.
constexpr std::uint64_t before_half = 0x2fed'f1ef'ce1d'5545;       // 2^63: the draw 0.5
constexpr std::uint64_t just_before_half = 0x0d4f'88b4'0677'61bd;  // 2^63 - 1: 0.5 - 2^-53
constexpr std::uint64_t before_zero = 0x61c8'8646'80b5'83eb;       // 0: the draw 0

TEST(SamplingTest, ADrawOnABoundaryBelongsToTheIntervalThatBeginsThere) {
  const std::vector<double> equal = {3.0, 3.0};
  const auto draw_from = [&](std::uint64_t state, std::span<const double> logits) {
    SplitMix64 rng(state);
    return must(sample(logits, {.greedy = false}, rng));
  };
  const Draw second = draw_from(before_half, equal);
  EXPECT_EQ(second.unit_draw, 0.5);
  EXPECT_EQ(second.token, 1U);
  EXPECT_EQ(second.interval_start, 0.5);
  EXPECT_EQ(second.interval_end, 1.0);
  const Draw first = draw_from(just_before_half, equal);
  EXPECT_EQ(first.unit_draw, 0.5 - 0x1p-53);
  EXPECT_EQ(first.token, 0U);
  // An interval without length holds no draw, not even one that is exactly where it lies.
  const Draw certain = draw_from(before_zero, std::vector<double>{-1e6, 3.0});
  EXPECT_EQ(certain.unit_draw, 0.0);
  EXPECT_EQ(certain.token, 1U);
  EXPECT_EQ(certain.probability, 1.0);
}

TEST(SamplingTest, EachChoiceTakesOneDraw) {
  SplitMix64 rng(77);
  SplitMix64 expected(77);
  const double unit = expected.unit();
  const Draw draw = must(sample(std::span<const double>(halves), {.greedy = false}, rng));
  EXPECT_EQ(draw.unit_draw, unit);
  EXPECT_EQ(rng.state(), expected.state());
}

TEST(SamplingTest, ASingleCandidateTakesADrawToo) {
  SplitMix64 rng(77);
  SplitMix64 expected(77);
  (void)expected.unit();
  const Draw draw =
      must(sample(std::span<const double>(halves), {.greedy = false, .top_k = 1}, rng));
  EXPECT_EQ(draw.token, 2U);
  EXPECT_EQ(draw.probability, 1.0);
  EXPECT_EQ(rng.state(), expected.state());
}

TEST(SamplingTest, TemperatureOfTwoTakesTheSquareRootOfTheWeights) {
  // Weights 1, 1/sqrt(2), 1/2, 1/2.
  const double total = 2.0 + std::numbers::sqrt2 / 2;
  const Draw draw = draw_in(0.0, 0.2, {.greedy = false, .temperature = 2.0});
  EXPECT_EQ(draw.token, 0U);
  EXPECT_NEAR(draw.interval_end, std::numbers::sqrt2 / 2 / total, exact);
}

TEST(SamplingTest, TheLargestOfTopKShareTheWholeInterval) {
  const SamplingConfig config{.greedy = false, .top_k = 2};
  const Draw first = draw_in(0.0, 0.3, config);
  EXPECT_EQ(first.token, 0U);
  EXPECT_NEAR(first.interval_end, 1.0 / 3, exact);
  const Draw second = draw_in(0.4, 1.0, config);
  EXPECT_EQ(second.token, 2U);
  EXPECT_NEAR(second.interval_start, 1.0 / 3, exact);
  EXPECT_EQ(second.interval_end, 1.0);
  EXPECT_EQ(second.candidates, 2U);
}

TEST(SamplingTest, TopKAtATieKeepsTheLowerId) {
  // Weights of ids 0, 1, 2 are 1/2, 1/4, 1; id 3 equals id 1 and is cut.
  const Draw draw = draw_in(0.3, 0.4, {.greedy = false, .top_k = 3});
  EXPECT_EQ(draw.token, 1U);
  EXPECT_NEAR(draw.interval_start, 2.0 / 7, exact);
  EXPECT_NEAR(draw.interval_end, 3.0 / 7, exact);
  EXPECT_EQ(draw.candidates, 3U);
}

TEST(SamplingTest, TopKBeyondTheVocabularyKeepsAll) {
  EXPECT_EQ(draw_in(0.0, 1.0, {.greedy = false, .top_k = 99}).candidates, 4U);
}

TEST(SamplingTest, TopPKeepsTheSmallestPrefixThatReachesIt) {
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .top_p = 0.4}).candidates, 1U);
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .top_p = 0.6}).candidates, 2U);
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .top_p = 0.8}).candidates, 3U);
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .top_p = 0.9}).candidates, 4U);
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .top_p = 1e-9}).candidates, 1U);
  // What is kept, ids 0 and 2, shares the whole interval: 1/3 and 2/3.
  EXPECT_NEAR(draw_in(0.9, 1, {.greedy = false, .top_p = 0.6}).interval_start, 1.0 / 3, exact);
}

TEST(SamplingTest, TopPExactlyReachedStopsThere) {
  // Equal logits: probabilities 1/4 each, exact in binary.
  const std::vector<double> equal(4, 1.5);
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .top_p = 0.5}, equal).candidates, 2U);
}

TEST(SamplingTest, MinPDropsCandidatesBelowItsShareOfTheLargest) {
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .min_p = 0.2}).candidates, 4U);
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .min_p = 0.3}).candidates, 2U);
  EXPECT_EQ(draw_in(0, 1, {.greedy = false, .min_p = 0.6}).candidates, 1U);
}

TEST(SamplingTest, MinPKeepsACandidateOfExactlyItsShare) {
  const double log_half = -std::numbers::ln2;
  ASSERT_EQ(ops::exponential(log_half), 0.5);
  const std::vector<double> logits = {0.0, log_half};
  const auto candidates = [&](double min_p) {
    return draw_in(0, 1, {.greedy = false, .min_p = min_p}, logits).candidates;
  };
  EXPECT_EQ(candidates(std::nextafter(0.5, 0)), 2U);
  EXPECT_EQ(candidates(0.5), 2U);
  EXPECT_EQ(candidates(std::nextafter(0.5, 1)), 1U);
}

TEST(SamplingTest, RepetitionPenaltyDividesPositiveAndMultipliesNegativeLogits) {
  const std::vector<double> logits = {4.0, 3.0, -1.0, -1.5};
  const std::vector<std::uint32_t> recent = {0, 2, 0, 2, 2};
  SplitMix64 rng(1);
  // 4 / 2 = 2 falls behind 3; each id counts once however often it came.
  EXPECT_EQ(
      must(sample(std::span<const double>(logits), {.repetition_penalty = 2.0}, rng, recent)).token,
      1U);
  // 2, 3, -2, -1.5: the negative one went down.
  const double total = std::exp(-1.0) + 1 + std::exp(-5.0) + std::exp(-4.5);
  const double before = (std::exp(-1.0) + 1) / total;
  const Draw third = draw_in(before + 0.001, before + 0.004,
                             {.greedy = false, .repetition_penalty = 2.0}, logits, recent);
  EXPECT_EQ(third.token, 2U);
  EXPECT_NEAR(third.probability, std::exp(-5.0) / total, exact);
}

TEST(SamplingTest, RepetitionPenaltyOfOneOrUnseenIdsChangeNothing) {
  const std::vector<std::uint32_t> recent = {0, 1, 2, 3};
  const Draw plain = draw_in(0.6, 0.7, {.greedy = false});
  const Draw one = draw_in(0.6, 0.7, {.greedy = false, .repetition_penalty = 1.0}, halves, recent);
  const Draw unseen = draw_in(0.6, 0.7, {.greedy = false, .repetition_penalty = 5.0});
  EXPECT_EQ(one.token, plain.token);
  EXPECT_EQ(one.interval_end, plain.interval_end);
  EXPECT_EQ(unseen.interval_end, plain.interval_end);
}

TEST(SamplingTest, WhatAPenaltyMakesInfiniteIsCertain) {
  const std::vector<double> logits = {3.0, 1e300, 2.0, 1e300};
  const std::vector<std::uint32_t> recent = {1};
  for (const SamplingConfig& cuts : {SamplingConfig{}, SamplingConfig{.top_k = 3},
                                     SamplingConfig{.top_p = 0.9}, SamplingConfig{.min_p = 0.1}}) {
    SamplingConfig config = cuts;
    config.greedy = false;
    config.repetition_penalty = 1e-10;
    for (const double low : {0.0, 0.9}) {
      const Draw draw = draw_in(low, low + 0.1, config, logits, recent);
      EXPECT_EQ(draw.token, 1U);
      EXPECT_EQ(draw.probability, 1.0);
    }
  }
}

// From a logit of 1 on, adding the small weights one after the other to 1 would lose each of them.
TEST(SamplingTest, SumsAreCompensated) {
  constexpr std::size_t n_small = 1U << 20U;
  std::vector<double> logits(1 + n_small, std::log(0x1p-54));
  logits[0] = 0.0;
  const double total = 1.0 + static_cast<double>(n_small) * 0x1p-54;
  SplitMix64 rng = rng_that_draws(0.0, 0.5);
  const Draw draw = must(sample(std::span<const double>(logits), {.greedy = false}, rng));
  EXPECT_NEAR(draw.interval_end, 1.0 / total, 0x1p-52);
  EXPECT_LT(draw.interval_end, 1.0 - 0x1p-36);
}

// The rules word for word: rank all, cut, sort by id, add.
Draw draw_by_the_rules(std::span<const double> logits, const SamplingConfig& config, double unit) {
  std::vector<std::uint32_t> kept(logits.size());
  std::iota(kept.begin(), kept.end(), 0U);
  std::ranges::stable_sort(kept, std::greater{}, [&](std::uint32_t id) { return logits[id]; });
  const double largest = logits[kept[0]];
  const auto weight = [&](std::uint32_t id) {
    return std::exp((static_cast<long double>(logits[id]) - largest) / config.temperature);
  };
  const auto total = [&] {
    long double sum = 0;
    for (const std::uint32_t id : kept) sum += weight(id);
    return sum;
  };
  if (config.top_k != 0 && config.top_k < kept.size()) kept.resize(config.top_k);
  if (config.top_p < 1) {
    const long double enough = config.top_p * total();
    std::size_t n = 0;
    for (long double sum = 0; n < kept.size() && sum < enough; ++n) sum += weight(kept[n]);
    kept.resize(n);
  }
  while (kept.size() > 1 && weight(kept.back()) < config.min_p) kept.pop_back();
  std::ranges::sort(kept);
  const long double all = total();
  long double start = 0;
  for (std::size_t i = 0;; ++i) {
    const long double end = start + weight(kept[i]) / all;
    if (unit < end || i + 1 == kept.size()) {
      return {.token = kept[i],
              .probability = static_cast<double>(end - start),
              .unit_draw = unit,
              .interval_start = static_cast<double>(start),
              .interval_end = static_cast<double>(end),
              .candidates = kept.size()};
    }
    start = end;
  }
}

TEST(SamplingTest, FollowsTheRulesWhateverTheVocabularyAndTheCuts) {
  SplitMix64 rng(2030);
  const auto one_of = [&]<class T>(std::initializer_list<T> values) {
    return values.begin()[rng.next() % values.size()];
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<double> logits(one_of({1U, 2U, 63U, 64U, 65U, 300U, 2000U}));
    const double spread = one_of({0.01, 1.0, 10.0, 100.0});
    for (double& logit : logits) {
      logit = std::round((rng.unit() + rng.unit() + rng.unit()) * 64) / 64 * spread;  // ties
    }
    const SamplingConfig config{
        .greedy = false,
        .temperature = one_of({0.3, 1.0, 1.7}),
        .top_k = one_of({std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{500}}),
        .top_p = one_of({0.01, 0.5, 0.95, 1.0}),
        .min_p = one_of({0.0, 0.05, 0.7})};
    SplitMix64 ahead = rng;
    const Draw expected = draw_by_the_rules(logits, config, ahead.unit());
    const Draw draw = must(sample(std::span<const double>(logits), config, rng));
    SCOPED_TRACE("round " + std::to_string(round) + " of SplitMix64(2030)");
    EXPECT_EQ(draw.token, expected.token);
    EXPECT_EQ(draw.candidates, expected.candidates);
    EXPECT_EQ(draw.unit_draw, expected.unit_draw);
    EXPECT_NEAR(draw.interval_start, expected.interval_start, exact);
    EXPECT_NEAR(draw.interval_end, expected.interval_end, exact);
  }
}

TEST(SamplingTest, FloatAndDoubleLogitsOfTheSameValuesDrawTheSame) {
  const std::vector<float> narrow = {0.5F, -1.25F, 3.0F, 2.0F};
  const std::vector<double> wide(narrow.begin(), narrow.end());
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SplitMix64 a(seed);
    SplitMix64 b(seed);
    const SamplingConfig config{.greedy = false, .temperature = 1.3, .top_k = 3};
    const Draw from_float = must(sample(std::span<const float>(narrow), config, a));
    const Draw from_double = must(sample(std::span<const double>(wide), config, b));
    EXPECT_EQ(from_float.token, from_double.token);
    EXPECT_EQ(from_float.interval_start, from_double.interval_start);
    EXPECT_EQ(from_float.interval_end, from_double.interval_end);
  }
}

TEST(SamplingTest, InvalidSettingsAreNamedAndLeaveTheRng) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<const char*, SamplingConfig>> cases = {
      {"temperature", {.greedy = false, .temperature = 0.0}},
      {"temperature", {.greedy = false, .temperature = -1.0}},
      {"temperature", {.greedy = false, .temperature = nan}},
      {"temperature", {.greedy = false, .temperature = infinity}},
      {"top_p", {.greedy = false, .top_p = 0.0}},
      {"top_p", {.greedy = false, .top_p = 1.5}},
      {"top_p", {.greedy = false, .top_p = nan}},
      {"min_p", {.greedy = false, .min_p = -0.1}},
      {"min_p", {.greedy = false, .min_p = 1.0}},
      {"min_p", {.greedy = false, .min_p = nan}},
      {"repetition_penalty", {.greedy = false, .repetition_penalty = 0.0}},
      {"repetition_penalty", {.greedy = false, .repetition_penalty = nan}},
      {"repetition_penalty", {.greedy = true, .repetition_penalty = -2.0}},
  };
  for (const auto& [field, config] : cases) {
    SCOPED_TRACE(field);
    SplitMix64 rng(3);
    const auto context = expect_error<FieldContext>(
        sample(std::span<const double>(halves), config, rng), ErrorCode::invalid_sampling);
    EXPECT_EQ(context.field, field);
    EXPECT_EQ(rng.state(), 3U);
    EXPECT_FALSE(validate(config));
  }
  EXPECT_TRUE(testing::succeeded(validate(SamplingConfig{})));
}

TEST(SamplingTest, NoLogitsOrNonFiniteOnesLeaveTheRng) {
  for (const bool greedy : {true, false}) {
    SplitMix64 rng(3);
    expect_error<NoContext>(sample(std::span<const double>{}, {.greedy = greedy}, rng),
                            ErrorCode::empty_prompt);
    std::vector<double> logits = halves;
    logits[2] = std::numeric_limits<double>::infinity();
    const auto context =
        expect_error<ValueContext>(sample(std::span<const double>(logits), {.greedy = greedy}, rng),
                                   ErrorCode::non_finite_value);
    EXPECT_EQ(context.tensor, "logits");
    EXPECT_EQ(context.index, 2U);
    EXPECT_EQ(rng.state(), 3U);
  }
}

TEST(TopTokensTest, AreRankedWithTheirLogProbabilities) {
  const auto top = must(top_tokens(std::span<const double>(halves), 3));
  ASSERT_EQ(top.size(), 3U);
  const std::vector<std::uint32_t> tokens = {2, 0, 1};
  const std::vector<double> probabilities = {0.5, 0.25, 0.125};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(top[i].token, tokens[i]);
    EXPECT_EQ(top[i].logit, halves[tokens[i]]);
    EXPECT_NEAR(top[i].logprob, std::log(probabilities[i]), exact);
  }
}

TEST(TopTokensTest, AreTheFirstOfAllInOrderAndOfEqualsTheLowerId) {
  SplitMix64 rng(2027);
  std::vector<float> logits(300);
  for (float& logit : logits) logit = static_cast<float>(rng.next() % 40);  // many ties
  std::vector<std::uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::uint32_t token) { return logits[token]; });
  for (const std::size_t n : {1U, 2U, 7U, 40U, 299U, 300U}) {
    const auto top = must(top_tokens(std::span<const float>(logits), n));
    ASSERT_EQ(top.size(), n);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(top[i].token, order[i]) << n;
  }
}

TEST(TopTokensTest, MoreThanThereAreGivesAll) {
  EXPECT_EQ(must(top_tokens(std::span<const double>(halves), 99)).size(), 4U);
  EXPECT_TRUE(must(top_tokens(std::span<const double>(halves), 0)).empty());
}

TEST(TopTokensTest, NeedsFiniteLogits) {
  expect_error<NoContext>(top_tokens(std::span<const float>{}, 1), ErrorCode::empty_prompt);
  const std::vector<float> logits = {0, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(expect_error<ValueContext>(top_tokens(std::span<const float>(logits), 1),
                                       ErrorCode::non_finite_value)
                .index,
            1U);
}

}  // namespace
}  // namespace kvlens
