// Counters are checked 64-bit sums; a contrast compares what was measured with what a formula
// gives.

#include "kvlens/work.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/expect.h"
#include "support/models.h"
#include "support/snapshot.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::must;

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

TEST(WorkTest, CheckedAddAddsEveryCounter) {
  Work a;
  Work b;
  std::uint64_t next = 1;
#define KVLENS_SET(name) a.name = next, b.name = 100 * next, ++next;
  KVLENS_WORK_COUNTERS(KVLENS_SET)
#undef KVLENS_SET
  const Work sum = must(checked_add(a, b));
  next = 1;
#define KVLENS_EXPECT(name) EXPECT_EQ(sum.name, 101 * next++) << #name;
  KVLENS_WORK_COUNTERS(KVLENS_EXPECT)
#undef KVLENS_EXPECT
  EXPECT_EQ(next, 16U);
}

TEST(WorkTest, OverflowOfAnyCounterIsAnErrorThatNamesIt) {
#define KVLENS_OVERFLOW(name)                                                             \
  {                                                                                       \
    Work a;                                                                               \
    Work b;                                                                               \
    a.name = largest;                                                                     \
    EXPECT_TRUE(testing::succeeded(checked_add(a, b)));                                   \
    b.name = 1;                                                                           \
    const auto sum = checked_add(a, b);                                                   \
    expect_error<NoContext>(sum, ErrorCode::work_overflow);                               \
    EXPECT_NE(sum.error().message.find(#name), std::string::npos) << sum.error().message; \
    expect_error<NoContext>(checked_add(b, a), ErrorCode::work_overflow);                 \
  }
  KVLENS_WORK_COUNTERS(KVLENS_OVERFLOW)
#undef KVLENS_OVERFLOW
}

// 2 layers, 2 heads. Cached: prefill of 2, decodes to 3 and 4: rows of 1 + 2 + 3 + 4 = 10 entries
// in each of 4 tensors. Replay: grids of 4 + 9 + 16 = 29. Projections: q, k and v in 2 layers, of 4
// rows and of 2 + 3 + 4 rows.
class ContrastTest : public ::testing::Test {
 protected:
  Config config_ = testing::tiny_config();
  std::vector<std::size_t> lengths_ = {2, 3, 4};
  Work cached_ = counts(4 * 10, 6 * 4);
  Work replay_ = counts(4 * 29, 6 * 9);

  static Work counts(std::uint64_t scores, std::uint64_t rows) {
    Work work;
    work.attention_score_values = scores;
    work.qkv_projection_rows = rows;
    return work;
  }
  [[nodiscard]] Result<Contrast> made(std::span<const std::size_t> cached,
                                      std::span<const std::size_t> replay) const {
    return contrast(config_, {cached, cached_}, {replay, replay_});
  }
  [[nodiscard]] Result<Contrast> made() const { return made(lengths_, lengths_); }
};

TEST_F(ContrastTest, AvoidedIsTheDifference) {
  const Contrast difference = must(made());
  EXPECT_EQ(difference.cached_score_values, 40U);
  EXPECT_EQ(difference.replay_score_values, 116U);
  EXPECT_EQ(difference.avoided_score_values, 76U);
  EXPECT_EQ(difference.cached_projection_rows, 24U);
  EXPECT_EQ(difference.replay_projection_rows, 54U);
  EXPECT_EQ(difference.avoided_projection_rows, 30U);
}

TEST_F(ContrastTest, APromptAloneOfOneTokenAvoidsNothing) {
  cached_ = replay_ = counts(4, 6);
  const std::vector<std::size_t> one = {1};
  const Contrast difference = must(made(one, one));
  EXPECT_EQ(difference.avoided_score_values, 0U);
  EXPECT_EQ(difference.avoided_projection_rows, 0U);
}

TEST_F(ContrastTest, ACountThatIsNotTheFormulasIsAnErrorWithBoth) {
  struct Case {
    std::uint64_t Work::* counter;
    bool cached;
    std::uint64_t computed;
  };
  for (const Case& c :
       {Case{&Work::attention_score_values, true, 40}, Case{&Work::qkv_projection_rows, true, 24},
        Case{&Work::attention_score_values, false, 116},
        Case{&Work::qkv_projection_rows, false, 54}}) {
    for (const int by : {-1, 1}) {
      Work& work = c.cached ? cached_ : replay_;
      work.*(c.counter) = c.computed + static_cast<std::uint64_t>(by);
      const auto context = expect_error<FieldContext>(made(), ErrorCode::count_mismatch);
      EXPECT_EQ(context.value, std::to_string(work.*(c.counter)));
      EXPECT_EQ(context.allowed, std::to_string(c.computed));
      work.*(c.counter) = c.computed;
    }
  }
  EXPECT_TRUE(testing::succeeded(made()));
}

TEST_F(ContrastTest, ACacheThatDidMoreThanTheReplayIsAnError) {
  std::swap(cached_, replay_);
  const auto limit = expect_error<LimitContext>(made(), ErrorCode::cached_exceeds_replay);
  EXPECT_EQ(limit.value, 116U);
  EXPECT_EQ(limit.limit, 40U);
  cached_ = counts(40, 55);
  replay_ = counts(116, 54);
  const auto rows = expect_error<LimitContext>(made(), ErrorCode::cached_exceeds_replay);
  EXPECT_EQ(rows.value, 55U);
  EXPECT_EQ(rows.limit, 54U);
}

TEST_F(ContrastTest, SchedulesMustBeTheSameAndGrowByOne) {
  const std::vector<std::size_t> none;
  const std::vector<std::size_t> zero = {0, 1};
  const std::vector<std::size_t> shorter = {2, 3};
  const std::vector<std::size_t> gap = {2, 4, 5};
  const std::vector<std::size_t> back = {2, 3, 3};
  const std::vector<std::size_t> other = {1, 2, 3};
  const auto refused = [&](const auto& cached, const auto& replay) {
    EXPECT_EQ(expect_error<FieldContext>(made(cached, replay), ErrorCode::invalid_argument).field,
              "prefix_lengths");
  };
  refused(none, none);
  refused(zero, zero);
  refused(lengths_, shorter);
  refused(shorter, lengths_);
  refused(gap, gap);
  refused(back, back);
  refused(lengths_, other);
  refused(lengths_, none);
}

TEST_F(ContrastTest, AFormulaThatOverflowsIsAnError) {
  const std::vector<std::size_t> lengths = {std::numeric_limits<std::size_t>::max() - 1};
  config_.n_layers = config_.n_heads = std::size_t{1} << 31U;
  expect_error<NoContext>(made(lengths, lengths), ErrorCode::work_overflow);
}

TEST_F(ContrastTest, MeasuredWorkOfASessionAndItsReplaysAgreesForRandomDecoders) {
  for (std::uint64_t seed = 900; seed < 920; ++seed) {
    SplitMix64 rng(seed);
    const Config config = testing::random_config(rng);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + testing::describe(config));
    const auto session = testing::make_session<double>(testing::random_model(config, rng));
    const auto tokens = testing::random_tokens(rng, config.max_seq_len, config.vocab_size);
    const std::size_t prompt = testing::random_size(rng, 1, tokens.size());
    std::vector<std::size_t> lengths;
    Work replay;
    must(session->prefill(std::span(tokens).first(prompt)));
    for (std::size_t len = prompt; len <= tokens.size(); ++len) {
      if (len > prompt) must(session->decode(tokens[len - 1]));
      lengths.push_back(len);
      replay = must(checked_add(replay, must(session->replay(std::span(tokens).first(len))).work));
    }
    const auto difference = contrast(config, {lengths, session->work()}, {lengths, replay});
    ASSERT_TRUE(testing::succeeded(difference));
    EXPECT_EQ(difference->avoided_score_values,
              replay.attention_score_values - session->work().attention_score_values);
  }
}

}  // namespace
}  // namespace kvlens
