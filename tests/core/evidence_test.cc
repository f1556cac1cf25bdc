// Evidence: every stage of every layer as it was computed, in the shape that stage.h states.

#include "kvlens/evidence.h"

#include <gtest/gtest.h>

#include <map>

#include "kvlens/session.h"
#include "support/cache_rows.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/snapshot.h"
#include "support/taps.h"

namespace kvlens {
namespace {

using testing::describe;
using testing::must;

const std::vector<std::uint32_t> prompt = {2, 0, 5};

std::map<Stage, std::size_t> sizes_of(const Config& c, std::size_t position) {
  return {{Stage::embedding, c.d_model},
          {Stage::attention_norm, c.d_model},
          {Stage::q_projection, c.n_heads * c.head_dim},
          {Stage::k_projection, c.n_kv_heads * c.head_dim},
          {Stage::v_projection, c.n_kv_heads * c.head_dim},
          {Stage::q_norm, c.n_heads * c.head_dim},
          {Stage::k_norm, c.n_kv_heads * c.head_dim},
          {Stage::q_rope, c.n_heads * c.head_dim},
          {Stage::k_rope, c.n_kv_heads * c.head_dim},
          {Stage::attention_weights, c.n_heads * (position + 1)},
          {Stage::head_outputs, c.n_heads * c.head_dim},
          {Stage::attention_output, c.d_model},
          {Stage::attention_residual, c.d_model},
          {Stage::ffn_norm, c.d_model},
          {Stage::ffn_gate, c.d_ff},
          {Stage::ffn_up, c.d_ff},
          {Stage::ffn_activation, c.d_ff},
          {Stage::ffn_output, c.d_model},
          {Stage::ffn_residual, c.d_model},
          {Stage::final_norm, c.d_model},
          {Stage::logits, c.vocab_size}};
}

class EvidenceTest : public ::testing::Test {
 protected:
  Config config_ = testing::config_variants().back().config;
  SplitMix64 rng_{101};
  std::shared_ptr<Model> model_ = testing::random_model(config_, rng_);
  std::unique_ptr<Session<double>> session_ = testing::make_session<double>(model_);
};

TEST_F(EvidenceTest, EveryStageIsRecordedInFullWithTheBitsThatATapSees) {
  EvidenceRecorder<double> recorder(Capture::all);
  must(session_->prefill(prompt, &recorder));
  session_->reset();
  testing::SiteLog<double> log;
  must(session_->prefill(prompt, &log));
  ASSERT_EQ(recorder.records().size(), log.entries.size());
  for (std::size_t i = 0; i < log.entries.size(); ++i) {
    const auto& record = recorder.records()[i];
    SCOPED_TRACE(describe(record.site));
    EXPECT_EQ(record.site.stage, log.entries[i].site.stage);
    EXPECT_EQ(record.site.layer, log.entries[i].site.layer);
    EXPECT_EQ(record.site.position, log.entries[i].site.position);
    EXPECT_EQ(record.values.size(), sizes_of(config_, record.site.position).at(record.site.stage));
    EXPECT_TRUE(testing::same_bits(record.values.span(), log.entries[i].values));
  }
}

TEST_F(EvidenceTest, AttentionAloneIsOneRecordALayerAndRow) {
  EvidenceRecorder<double> recorder(Capture::attention);
  must(session_->prefill(prompt, &recorder));
  EXPECT_EQ(recorder.records().size(), config_.n_layers * prompt.size());
  for (const auto& record : recorder.records()) {
    EXPECT_EQ(record.site.stage, Stage::attention_weights);
  }
  recorder.clear();
  EXPECT_TRUE(recorder.records().empty());
}

TEST_F(EvidenceTest, NoneRecordsNothing) {
  EvidenceRecorder<double> recorder(Capture::none);
  must(session_->prefill(prompt, &recorder));
  EXPECT_TRUE(recorder.records().empty());
}

TEST_F(EvidenceTest, OnlyTheLayersThatWereAskedForAreRecorded) {
  EvidenceRecorder<double> recorder(Capture::attention, {1});
  must(session_->prefill(prompt, &recorder));
  EXPECT_EQ(recorder.records().size(), prompt.size());
  for (const auto& record : recorder.records()) EXPECT_EQ(record.site.layer, 1U);
}

// What is drawn is what produced the logits: each record follows from the ones before it.
TEST_F(EvidenceTest, RecordsAreTheNumbersThatTheNextStageUsed) {
  EvidenceRecorder<double> recorder(Capture::all);
  const auto step = must(session_->prefill(prompt, &recorder));
  std::map<Stage, const EvidenceRecorder<double>::Record*> last_row;  // of layer 1
  for (const auto& record : recorder.records()) {
    if (record.site.position == 2 && record.site.layer != 0) {
      last_row[record.site.stage] = &record;
    }
  }
  const auto of = [&](Stage stage) { return last_row.at(stage)->values.span(); };
  EXPECT_TRUE(testing::same_bits(of(Stage::logits), testing::copy_of(step.logits)));

  const LayerKvCache<double>& cache = session_->cache()->layers()[1];
  for (std::size_t head = 0; head < config_.n_heads; ++head) {
    const std::size_t kv_head = head / config_.group_size();
    const std::vector<double> keys = testing::keys_of(cache, 0, kv_head);
    const std::vector<double> values = testing::values_of(cache, 0, kv_head);
    const auto newest = std::span(keys).last(config_.head_dim);
    EXPECT_TRUE(testing::same_bits(
        of(Stage::k_rope).subspan(kv_head * config_.head_dim, config_.head_dim), newest));
    for (std::size_t i = 0; i < config_.head_dim; ++i) {
      double mixed = 0;
      for (std::size_t position = 0; position < 3; ++position) {
        mixed += of(Stage::attention_weights)[head * 3 + position] *
                 values[position * config_.head_dim + i];
      }
      EXPECT_NEAR(of(Stage::head_outputs)[head * config_.head_dim + i], mixed, 1e-14);
    }
  }
  for (std::size_t i = 0; i < config_.d_model; ++i) {
    EXPECT_EQ(of(Stage::ffn_residual)[i],
              of(Stage::attention_residual)[i] + of(Stage::ffn_output)[i]);
  }
}

TEST_F(EvidenceTest, AWindowsWeightsAreZeroOutsideAndAddToOneInside) {
  EvidenceRecorder<double> recorder(Capture::attention);
  const std::vector<std::uint32_t> tokens = {1, 2, 3, 4, 5, 6, 0};
  must(session_->prefill(tokens, &recorder));
  for (const auto& record : recorder.records()) {
    const std::size_t len = record.site.position + 1;
    for (std::size_t head = 0; head < config_.n_heads; ++head) {
      double sum = 0;
      for (std::size_t position = 0; position < len; ++position) {
        const double weight = record.values[head * len + position];
        EXPECT_EQ(weight == 0.0, position < config_.window_begin(len - 1));
        sum += weight;
      }
      EXPECT_NEAR(sum, 1.0, 1e-15 * static_cast<double>(len));
    }
  }
}

TEST(StageTest, NamesAreThoseOfTheTable) {
  EXPECT_EQ(stage_name(Stage::embedding), "embedding");
  EXPECT_EQ(stage_name(Stage::k_rope), "k_rope");
  EXPECT_EQ(stage_name(Stage::logits), "logits");
}

TEST(DTypeTest, NamesGoBothWaysAndSizesAreThoseOfTheFormats) {
#define KVLENS_EXPECT_DTYPE(type, values, bytes)                        \
  EXPECT_EQ(dtype_info(DType::type).name, #type);                       \
  EXPECT_EQ(dtype_info(DType::type).block_values, std::size_t{values}); \
  EXPECT_EQ(dtype_info(DType::type).block_bytes, std::size_t{bytes});   \
  EXPECT_EQ(dtype_from_name(#type), DType::type);                       \
  EXPECT_EQ(is_quantised(DType::type), (values) > 1);
  KVLENS_DTYPES(KVLENS_EXPECT_DTYPE)
#undef KVLENS_EXPECT_DTYPE
  EXPECT_EQ(dtype_from_name("q9_9"), std::nullopt);
  // 4.5 bits a value: a half scale and 32 nibbles.
  EXPECT_EQ(dtype_info(DType::q4_0).block_bytes, 2U + 32 / 2);
}

}  // namespace
}  // namespace kvlens
