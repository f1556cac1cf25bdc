// All or nothing: a call stopped at any stage of any layer and row, or that meets NaN there, leaves
// the session as it was, and the session goes on to the bits of an undisturbed one.

#include <gtest/gtest.h>

#include "kvlens/session.h"
#include "support/cache_rows.h"
#include "support/calls.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/schedules.h"
#include "support/snapshot.h"
#include "support/taps.h"

namespace kvlens {
namespace {

using testing::describe;
using testing::must;
using testing::same_state;
using testing::SessionCall;
using testing::SiteLog;
using testing::snapshot;

template <class T>
class FaultInjectionTest : public ::testing::Test {};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(FaultInjectionTest, ComputeTypes);

// Decoders that between them pass every stage.
std::vector<testing::NamedConfig> configs() {
  std::vector<testing::NamedConfig> chosen;
  for (const auto& variant : testing::config_variants()) {
    if (variant.name == "mha" || variant.name == "gqa" || variant.name == "everything") {
      chosen.push_back(variant);
    }
  }
  return chosen;
}

template <class T>
std::vector<typename SiteLog<T>::Entry> sites_of(const std::shared_ptr<Model>& model,
                                                 const SessionCall<T>& call,
                                                 std::size_t chunk_rows) {
  const auto session =
      testing::make_session<T>(model, model->config().max_seq_len, {.chunk_rows = chunk_rows});
  must(call.before(*session));
  SiteLog<T> log;
  must(call.call(*session, &log));
  return std::move(log.entries);
}

// The session after the call and one more decode, never disturbed.
template <class T>
testing::Snapshot<T> undisturbed(const std::shared_ptr<Model>& model, const SessionCall<T>& call,
                                 std::size_t chunk_rows) {
  const auto session =
      testing::make_session<T>(model, model->config().max_seq_len, {.chunk_rows = chunk_rows});
  must(call.before(*session));
  must(call.call(*session, nullptr));
  must(session->decode(0));
  return snapshot(*session);
}

TYPED_TEST(FaultInjectionTest, ACallStoppedAtAnySiteChangesNothingAndCanBeMadeAgain) {
  using T = TypeParam;
  SplitMix64 rng(31);
  for (const auto& [name, config] : configs()) {
    const auto model = testing::random_model(config, rng);
    for (const auto& call : testing::tapped_calls<T>()) {
      for (const std::size_t chunk_rows : {1U, 2U, 32U}) {
        SCOPED_TRACE(name + ", " + call.name + ", chunk_rows " + std::to_string(chunk_rows));
        const auto sites = sites_of<T>(model, call, chunk_rows);
        const auto expected = undisturbed<T>(model, call, chunk_rows);
        const auto session =
            testing::make_session<T>(model, config.max_seq_len, {.chunk_rows = chunk_rows});
        must(call.before(*session));
        const auto before = snapshot(*session);
        for (std::size_t fatal = 0; fatal < sites.size(); ++fatal) {
          testing::FaultTap<T> tap(fatal);
          const auto result = call.call(*session, &tap);
          ASSERT_TRUE(tap.fired());
          const auto where = testing::expect_error<SiteContext>(result, ErrorCode::interrupted);
          EXPECT_EQ(where.stage, stage_name(sites[fatal].site.stage));
          EXPECT_EQ(where.layer, sites[fatal].site.layer);
          EXPECT_EQ(where.position, sites[fatal].site.position);
          ASSERT_TRUE(same_state(snapshot(*session), before))
              << "stopped at " << describe(sites[fatal].site);
        }
        // The same session, after all those failures.
        must(call.call(*session, nullptr));
        must(session->decode(0));
        EXPECT_TRUE(testing::same_content(snapshot(*session), expected));
      }
    }
  }
}

// Tries NaN in the first and last element at every site of every call: either an error that changes
// nothing, or nothing that is kept may differ.
template <class T>
void expect_nan_is_caught_or_harmless(const std::shared_ptr<Model>& model) {
  const std::size_t capacity = model->config().max_seq_len;
  for (const auto& call : testing::tapped_calls<T>()) {
    SCOPED_TRACE(call.name);
    const auto sites = sites_of<T>(model, call, 2);
    const auto expected = undisturbed<T>(model, call, 2);
    std::size_t caught = 0;
    for (std::size_t spoiled = 0; spoiled < sites.size(); ++spoiled) {
      for (const bool last : {false, true}) {
        const auto session = testing::make_session<T>(model, capacity, {.chunk_rows = 2});
        must(call.before(*session));
        const auto before = snapshot(*session);
        testing::NanTap<T> tap(spoiled, last);
        const auto result = call.call(*session, &tap);
        if (!result) {
          EXPECT_EQ(result.error().code, ErrorCode::non_finite_value) << result.error().message;
          ASSERT_TRUE(same_state(snapshot(*session), before))
              << "NaN at " << describe(sites[spoiled].site);
          ++caught;
          continue;
        }
        must(session->decode(0));
        ASSERT_TRUE(testing::same_content(snapshot(*session), expected))
            << "NaN at " << describe(sites[spoiled].site);
      }
    }
    EXPECT_GT(caught, sites.size());
  }
}

TYPED_TEST(FaultInjectionTest, NanAtAnySiteIsCaughtBeforeTheCommitOrReachesNothing) {
  SplitMix64 rng(32);
  for (const auto& [name, config] : configs()) {
    SCOPED_TRACE(name);
    expect_nan_is_caught_or_harmless<TypeParam>(testing::random_model(config, rng));
  }
}

// Inputs of quantised matrices are rounded to int8, which has no NaN.
TYPED_TEST(FaultInjectionTest, NanInTheInputOfAQuantisedMatrixIsCaughtToo) {
  SplitMix64 rng(38);
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q5_1}) {
    SCOPED_TRACE(dtype_info(dtype).name);
    Config config = testing::tiny_config();
    config.n_layers = 1;
    config.d_model = 64;
    config.head_dim = 16;
    config.d_ff = 32;
    expect_nan_is_caught_or_harmless<TypeParam>(testing::random_model(config, rng, dtype));
  }
}

TYPED_TEST(FaultInjectionTest, NanInTheLastRowsResidualOrLogitsIsAlwaysAnError) {
  using T = TypeParam;
  SplitMix64 rng(33);
  const auto model = testing::random_model(testing::tiny_config(), rng);
  const auto call = testing::tapped_calls<T>()[0];
  const auto sites = sites_of<T>(model, call, 32);
  std::size_t tried = 0;
  for (std::size_t at = 0; at < sites.size(); ++at) {
    const StageSite& site = sites[at].site;
    if (site.position != 2 || site.stage == Stage::attention_weights) continue;
    const auto session = testing::make_session<T>(model);
    testing::NanTap<T> tap(at, false);
    const auto context =
        testing::expect_error<ValueContext>(call.call(*session, &tap), ErrorCode::non_finite_value);
    EXPECT_NE(context.value, context.value) << describe(site);
    ++tried;
  }
  EXPECT_GT(tried, 2U * 15U);
}

// One row of the stages in stage.h, in its order.
TYPED_TEST(FaultInjectionTest, SitesComeInOrderOfLayerStageAndRow) {
  using T = TypeParam;
  SplitMix64 rng(34);
  for (const auto& [name, config] : configs()) {
    SCOPED_TRACE(name);
    const auto model = testing::random_model(config, rng);
    const auto sites = sites_of<T>(model, testing::tapped_calls<T>()[0], 32);
    std::size_t at = 0;
    const auto expect_rows = [&](Stage stage, std::size_t layer, std::size_t first_row) {
      for (std::size_t row = first_row; row < 3; ++row, ++at) {
        ASSERT_LT(at, sites.size());
        EXPECT_EQ(sites[at].site.stage, stage) << describe(sites[at].site);
        EXPECT_EQ(sites[at].site.layer, layer) << describe(sites[at].site);
        EXPECT_EQ(sites[at].site.position, row) << describe(sites[at].site);
      }
    };
    expect_rows(Stage::embedding, 0, 0);
    for (std::size_t layer = 0; layer < config.n_layers; ++layer) {
      for (auto stage = Stage::attention_norm; stage <= Stage::ffn_residual;
           stage = static_cast<Stage>(static_cast<int>(stage) + 1)) {
        if (!config.qk_norm && (stage == Stage::q_norm || stage == Stage::k_norm)) continue;
        expect_rows(stage, layer, 0);
      }
    }
    // Only the last row of a prefill needs logits.
    expect_rows(Stage::final_norm, config.n_layers, 2);
    expect_rows(Stage::logits, config.n_layers, 2);
    EXPECT_EQ(at, sites.size());
  }
}

TYPED_TEST(FaultInjectionTest, AnErrorUnderWaySaysInWhichLayerItArose) {
  using T = TypeParam;
  SplitMix64 rng(35);
  const auto model = testing::random_model(testing::tiny_config(), rng);
  const auto call = testing::tapped_calls<T>()[0];
  const auto sites = sites_of<T>(model, call, 32);
  for (std::size_t at = 0; at < sites.size(); ++at) {
    const StageSite& site = sites[at].site;
    if (site.stage != Stage::v_projection || site.layer != 1) continue;
    const auto session = testing::make_session<T>(model);
    testing::NanTap<T> tap(at, false);
    const auto result = call.call(*session, &tap);
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().message.find("decoder layer 1: incremental attention: ") !=
                std::string::npos)
        << result.error().message;
    ASSERT_NE(result.error().cause, nullptr);
    EXPECT_EQ(testing::root_cause(result.error()).cause, nullptr);
    EXPECT_EQ(testing::root_cause(result.error()).code, ErrorCode::non_finite_value);
    EXPECT_TRUE(result.error().message.ends_with(testing::root_cause(result.error()).message));
    return;
  }
  FAIL() << "no such site";
}

// A tap may write: what it writes is what the next stage computes with.
TYPED_TEST(FaultInjectionTest, ATapThatZeroesTheValuesOfALayerSilencesItsAttention) {
  using T = TypeParam;
  class Silence final : public StageTap<T> {
   public:
    [[nodiscard]] bool wants(Stage stage, std::size_t layer) const noexcept override {
      return layer == 0 && (stage == Stage::v_projection || stage == Stage::head_outputs);
    }
    [[nodiscard]] Result<void> at(const StageSite& site, std::span<T> values) override {
      for (T& value : values) {
        if (site.stage == Stage::v_projection) value = T{0};
        if (site.stage == Stage::head_outputs) seen.push_back(value);
      }
      return {};
    }
    std::vector<T> seen;
  };
  SplitMix64 rng(36);
  const auto model = testing::random_model(testing::tiny_config(), rng);
  const auto session = testing::make_session<T>(model);
  const auto plain = testing::make_session<T>(model);
  const std::vector<std::uint32_t> prompt = {1, 2};
  Silence tap;
  must(session->prefill(prompt, &tap));
  must(plain->prefill(prompt));
  ASSERT_EQ(tap.seen.size(), 2U * 8U);
  for (const T value : tap.seen) EXPECT_EQ(value, T{0});
  for (const T value : testing::values_of(session->cache()->layers()[0], 0, 0))
    EXPECT_EQ(value, T{0});
  EXPECT_FALSE(testing::same_bits(session->logits(), testing::copy_of(plain->logits())));
}

TYPED_TEST(FaultInjectionTest, ATapThatOnlyReadsChangesNoBit) {
  using T = TypeParam;
  SplitMix64 rng(37);
  for (const auto& [name, config] : testing::config_variants()) {
    SCOPED_TRACE(name);
    const auto model = testing::random_model(config, rng);
    for (const auto& call : testing::tapped_calls<T>()) {
      const auto with = testing::make_session<T>(model);
      const auto without = testing::make_session<T>(model);
      must(call.before(*with));
      must(call.before(*without));
      SiteLog<T> log;
      must(call.call(*with, &log));
      must(call.call(*without, nullptr));
      EXPECT_TRUE(testing::same_content(snapshot(*with), snapshot(*without))) << call.name;
    }
  }
}

}  // namespace
}  // namespace kvlens
