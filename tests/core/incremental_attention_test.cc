// One layer of incremental attention as an entry of its own.

#include "kvlens/incremental_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/cache_rows.h"
#include "support/calls.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/taps.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::keys_of;
using testing::must;
using testing::same_bits;
using testing::values_of;

template <class T>
class IncrementalAttentionTest : public ::testing::Test {
 protected:
  [[nodiscard]] LayerKvCache<T> make_cache(std::size_t batch, std::size_t capacity = 6) const {
    return must(LayerKvCache<T>::create({batch, config_.n_kv_heads, config_.head_dim, capacity,
                                         config_.max_seq_len, config_.rope}));
  }
  std::vector<T> hidden(std::size_t batch) {
    std::vector<T> values(batch * config_.d_model);
    for (T& value : values) value = static_cast<T>(2.0 * rng_.unit() - 1.0);
    return values;
  }
  TensorView<T> view(const std::vector<T>& values) const {
    return {values, {values.size() / config_.d_model, 1, config_.d_model}};
  }
  IncrementalAttention<T> attention(std::size_t layer = 0, std::size_t capacity = 6) const {
    return must(IncrementalAttention<T>::create(model_, layer, capacity));
  }

  // GQA, bias, q/k norm, window, half-split, frequency factors.
  Config config_ = testing::config_variants().back().config;
  SplitMix64 rng_{71};
  std::shared_ptr<Model> model_ = testing::random_model(config_, rng_);
};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(IncrementalAttentionTest, ComputeTypes);

TYPED_TEST(IncrementalAttentionTest, EvidenceHasTheShapesOfBatchHeadsAndLength) {
  auto attention = this->attention();
  auto cache = this->make_cache(3);
  const Config& c = this->config_;
  for (std::size_t len = 1; len <= 3; ++len) {
    const auto step = must(attention.step(this->view(this->hidden(3)), cache));
    EXPECT_EQ(step.batch, 3U);
    EXPECT_EQ(step.len, len);
    EXPECT_EQ(step.projected_q.size(), 3 * c.n_heads * c.head_dim);
    EXPECT_EQ(step.projected_k.size(), 3 * c.n_kv_heads * c.head_dim);
    EXPECT_EQ(step.projected_v.size(), 3 * c.n_kv_heads * c.head_dim);
    EXPECT_EQ(step.rotated_q.size(), 3 * c.n_heads * c.head_dim);
    EXPECT_EQ(step.rotated_k.size(), 3 * c.n_kv_heads * c.head_dim);
    EXPECT_EQ(step.weights.size(), 3 * c.n_heads * len);
    EXPECT_EQ(step.head_outputs.size(), 3 * c.n_heads * c.head_dim);
    EXPECT_EQ(step.merged.size(), 3 * c.n_heads * c.head_dim);
    EXPECT_EQ(step.output.size(), 3 * c.d_model);
    EXPECT_EQ(cache.len(), len);
  }
}

TYPED_TEST(IncrementalAttentionTest, RowCountsAreThoseOfPrefixStepAndReuse) {
  auto attention = this->attention();
  auto cache = this->make_cache(2);
  for (std::uint64_t len = 1; len <= 4; ++len) {
    const auto step = must(attention.step(this->view(this->hidden(2)), cache));
    EXPECT_EQ(step.full_prefix_rows, 3 * 2 * len);
    EXPECT_EQ(step.incremental_rows, 3U * 2);
    EXPECT_EQ(step.reused_rows, 2 * 2 * (len - 1));
  }
}

TYPED_TEST(IncrementalAttentionTest, LanesOfABatchEqualStepsOfTheirOwnBitForBit) {
  using T = TypeParam;
  auto attention = this->attention(1);
  auto together = this->make_cache(3);
  std::vector<LayerKvCache<T>> alone;
  for (int lane = 0; lane < 3; ++lane) alone.push_back(this->make_cache(1));
  for (int step_index = 0; step_index < 5; ++step_index) {
    const auto hidden = this->hidden(3);
    const auto batch = must(attention.step(this->view(hidden), together));
    for (std::size_t lane = 0; lane < 3; ++lane) {
      const std::size_t width = this->config_.d_model;
      const std::vector<T> own(hidden.begin() + static_cast<std::ptrdiff_t>(lane * width),
                               hidden.begin() + static_cast<std::ptrdiff_t>((lane + 1) * width));
      const auto single = must(attention.step(this->view(own), alone[lane]));
      const auto lane_of = [&](const Buffer<T>& all, const Buffer<T>& one) {
        return same_bits(all.span().subspan(lane * one.size(), one.size()), one.span());
      };
      EXPECT_TRUE(lane_of(batch.projected_q, single.projected_q));
      EXPECT_TRUE(lane_of(batch.projected_k, single.projected_k));
      EXPECT_TRUE(lane_of(batch.projected_v, single.projected_v));
      EXPECT_TRUE(lane_of(batch.rotated_q, single.rotated_q));
      EXPECT_TRUE(lane_of(batch.rotated_k, single.rotated_k));
      EXPECT_TRUE(lane_of(batch.weights, single.weights));
      EXPECT_TRUE(lane_of(batch.head_outputs, single.head_outputs));
      EXPECT_TRUE(lane_of(batch.merged, single.merged));
      EXPECT_TRUE(lane_of(batch.output, single.output));
      for (std::size_t head = 0; head < this->config_.n_kv_heads; ++head) {
        EXPECT_TRUE(same_bits<T>(keys_of(together, lane, head), keys_of(alone[lane], 0, head)));
        EXPECT_TRUE(same_bits<T>(values_of(together, lane, head), values_of(alone[lane], 0, head)));
      }
    }
  }
}

TYPED_TEST(IncrementalAttentionTest, IsTheDecodersLayerBitForBit) {
  using T = TypeParam;
  const std::vector<std::uint32_t> tokens = {4, 0, 6, 6, 1};
  for (const auto& [name, config] : testing::config_variants()) {
    SCOPED_TRACE(name);
    const auto model = testing::random_model(config, this->rng_);
    const auto session = testing::make_session<T>(model);
    testing::SiteLog<T> log;
    must(session->prefill(tokens, &log));
    for (std::size_t layer = 0; layer < config.n_layers; ++layer) {
      auto attention = must(IncrementalAttention<T>::create(model, layer, 6));
      auto cache = must(LayerKvCache<T>::create(
          {1, config.n_kv_heads, config.head_dim, 6, config.max_seq_len, config.rope}));
      for (std::size_t position = 0; position < tokens.size(); ++position) {
        const auto decoder = [&](Stage stage) -> const std::vector<T>& {
          for (const auto& entry : log.entries) {
            if (entry.site.stage == stage && entry.site.layer == layer &&
                entry.site.position == position) {
              return entry.values;
            }
          }
          static const std::vector<T> none;
          ADD_FAILURE() << "the decoder has no " << stage_name(stage);
          return none;
        };
        const auto step =
            must(attention.step({decoder(Stage::attention_norm), {1, 1, config.d_model}}, cache));
        EXPECT_TRUE(same_bits(step.projected_q.span(), decoder(Stage::q_projection)));
        EXPECT_TRUE(same_bits(step.projected_k.span(), decoder(Stage::k_projection)));
        EXPECT_TRUE(same_bits(step.projected_v.span(), decoder(Stage::v_projection)));
        EXPECT_TRUE(same_bits(step.rotated_q.span(), decoder(Stage::q_rope)));
        EXPECT_TRUE(same_bits(step.rotated_k.span(), decoder(Stage::k_rope)));
        EXPECT_TRUE(same_bits(step.weights.span(), decoder(Stage::attention_weights)));
        EXPECT_TRUE(same_bits(step.head_outputs.span(), decoder(Stage::head_outputs)));
        EXPECT_TRUE(same_bits(step.merged.span(), decoder(Stage::head_outputs)));
        EXPECT_TRUE(same_bits(step.output.span(), decoder(Stage::attention_output)));
      }
      EXPECT_EQ(cache.content_hash(tokens.size()),
                session->cache()->layers()[layer].content_hash(tokens.size()));
    }
  }
}

TYPED_TEST(IncrementalAttentionTest, WeightsOfARowAreASoftmaxOverItsWindow) {
  auto attention = this->attention();
  auto cache = this->make_cache(1);
  for (std::size_t len = 1; len <= 6; ++len) {
    const auto step = must(attention.step(this->view(this->hidden(1)), cache));
    for (std::size_t head = 0; head < this->config_.n_heads; ++head) {
      double sum = 0;
      for (std::size_t position = 0; position < len; ++position) {
        const TypeParam weight = step.weights[head * len + position];
        if (position < this->config_.window_begin(len - 1)) {
          EXPECT_EQ(weight, TypeParam{0});
        } else {
          EXPECT_GT(weight, TypeParam{0});
        }
        sum += static_cast<double>(weight);
      }
      EXPECT_NEAR(sum, 1.0, 1e-6);
    }
  }
}

TYPED_TEST(IncrementalAttentionTest, HiddenStatesOfAnotherShapeAreRefusedOneByOne) {
  using T = TypeParam;
  auto attention = this->attention();
  auto cache = this->make_cache(2);
  const std::size_t width = this->config_.d_model;
  const std::vector<T> values = this->hidden(2);
  must(attention.step(this->view(values), cache));
  const std::uint64_t hash = cache.content_hash(1);
  const auto refused = [&](std::vector<std::size_t> shape, ErrorCode code) {
    const auto context =
        expect_error<MismatchContext>(attention.step({values, std::move(shape)}, cache), code);
    EXPECT_EQ(cache.len(), 1U);
    EXPECT_EQ(cache.content_hash(1), hash);
    return context;
  };
  const auto rank = refused({2, width}, ErrorCode::rank_mismatch);
  EXPECT_EQ(rank.expected, 3U);
  EXPECT_EQ(rank.actual, 2U);
  EXPECT_EQ(refused({2, 1, 1, width}, ErrorCode::rank_mismatch).actual, 4U);
  const auto tokens = refused({1, 2, width}, ErrorCode::not_a_single_token);
  EXPECT_EQ(tokens.expected, 1U);
  EXPECT_EQ(tokens.actual, 2U);
  EXPECT_EQ(refused({2, 0, width}, ErrorCode::not_a_single_token).actual, 0U);
  const auto batch = refused({3, 1, width}, ErrorCode::batch_mismatch);
  EXPECT_EQ(batch.expected, 2U);
  EXPECT_EQ(batch.actual, 3U);
  const auto wide = refused({2, 1, width + 1}, ErrorCode::width_mismatch);
  EXPECT_EQ(wide.expected, width);
  EXPECT_EQ(wide.actual, width + 1);
}

TYPED_TEST(IncrementalAttentionTest, AShapeThatItsValuesDoNotFillIsRefused) {
  using T = TypeParam;
  auto attention = this->attention();
  auto cache = this->make_cache(2);
  const std::vector<T> values = this->hidden(1);
  expect_error<ShapeContext>(attention.step({values, {2, 1, this->config_.d_model}}, cache),
                             ErrorCode::shape_mismatch);
  EXPECT_EQ(cache.len(), 0U);
}

TYPED_TEST(IncrementalAttentionTest, ACacheOfAnotherGeometryOrRopeIsRefused) {
  using T = TypeParam;
  auto attention = this->attention(1);
  const auto refused = [&](auto change, ErrorCode code) {
    LayerGeometry geometry = this->make_cache(1).geometry();
    change(geometry);
    auto cache = must(LayerKvCache<T>::create(geometry));
    const auto context = expect_error<LayerMismatchContext>(
        attention.step(this->view(this->hidden(1)), cache), code);
    EXPECT_EQ(context.layer, 1U);
    EXPECT_EQ(cache.len(), 0U);
    return context;
  };
  const auto heads = refused([](auto& g) { g.n_kv_heads = 1; }, ErrorCode::layer_geometry_mismatch);
  EXPECT_EQ(heads.expected, 2U);
  EXPECT_EQ(heads.actual, 1U);
  refused([](auto& g) { g.head_dim = 2; }, ErrorCode::layer_geometry_mismatch);
  refused([](auto& g) { g.max_seq_len = 11; }, ErrorCode::layer_geometry_mismatch);
  const auto long_cache =
      refused([](auto& g) { g.capacity = 7; }, ErrorCode::layer_geometry_mismatch);
  EXPECT_EQ(long_cache.expected, 6U);
  EXPECT_EQ(long_cache.actual, 7U);
  refused([](auto& g) { g.rope.theta = 501.0; }, ErrorCode::layer_rope_mismatch);
}

TYPED_TEST(IncrementalAttentionTest, AFullCacheIsLeftAsItIs) {
  auto attention = this->attention();
  auto cache = this->make_cache(1, 2);
  must(attention.step(this->view(this->hidden(1)), cache));
  must(attention.step(this->view(this->hidden(1)), cache));
  const std::uint64_t hash = cache.content_hash(2);
  const auto limit = expect_error<LimitContext>(attention.step(this->view(this->hidden(1)), cache),
                                                ErrorCode::cache_full);
  EXPECT_EQ(limit.value, 3U);
  EXPECT_EQ(limit.limit, 2U);
  EXPECT_EQ(cache.len(), 2U);
  EXPECT_EQ(cache.content_hash(2), hash);
}

TYPED_TEST(IncrementalAttentionTest, AStepStoppedAtAnyStageOfAnyLaneAppendsNothing) {
  using T = TypeParam;
  auto attention = this->attention();
  auto cache = this->make_cache(2);
  auto plain_cache = this->make_cache(2);
  const auto first = this->hidden(2);
  const auto second = this->hidden(2);
  must(attention.step(this->view(first), cache));
  must(attention.step(this->view(first), plain_cache));
  testing::SiteLog<T> log;
  const auto plain = must(attention.step(this->view(second), plain_cache, &log));
  EXPECT_EQ(log.entries.size(), 2U * 10);  // from q_projection to attention_output, with q/k norm
  EXPECT_EQ(log.entries.front().site.stage, Stage::q_projection);
  EXPECT_EQ(log.entries.back().site.stage, Stage::attention_output);
  const std::uint64_t hash = cache.content_hash(1);
  for (std::size_t fatal = 0; fatal < log.entries.size(); ++fatal) {
    testing::FaultTap<T> tap(fatal);
    const auto result = attention.step(this->view(second), cache, &tap);
    expect_error<SiteContext>(result, ErrorCode::interrupted);
    ASSERT_EQ(cache.len(), 1U);
    ASSERT_EQ(cache.content_hash(1), hash);
  }
  const auto again = must(attention.step(this->view(second), cache));
  EXPECT_TRUE(same_bits(again.output.span(), plain.output.span()));
  EXPECT_EQ(cache.content_hash(2), plain_cache.content_hash(2));
}

TYPED_TEST(IncrementalAttentionTest, NanInTheHiddenStateOrAtAnyStageAppendsNothing) {
  using T = TypeParam;
  auto attention = this->attention();
  auto cache = this->make_cache(2);
  for (std::size_t index = 0; index < 2 * this->config_.d_model; ++index) {
    auto hidden = this->hidden(2);
    hidden[index] = std::numeric_limits<T>::quiet_NaN();
    const auto context = expect_error<ValueContext>(attention.step(this->view(hidden), cache),
                                                    ErrorCode::non_finite_value);
    EXPECT_TRUE(std::isnan(context.value));
    EXPECT_EQ(cache.len(), 0U);
  }
  for (std::size_t site = 0; site < 20; ++site) {
    testing::NanTap<T> tap(site, true);
    expect_error<ValueContext>(attention.step(this->view(this->hidden(2)), cache, &tap),
                               ErrorCode::non_finite_value);
    EXPECT_EQ(cache.len(), 0U) << "site " << site;
  }
}

TYPED_TEST(IncrementalAttentionTest, IsMadeForALayerAndACapacityThatExist) {
  const auto layer = expect_error<FieldContext>(
      IncrementalAttention<TypeParam>::create(this->model_, 2, 6), ErrorCode::invalid_argument);
  EXPECT_EQ(layer.field, "layer");
  EXPECT_EQ(layer.value, "2");
  expect_error<NoContext>(IncrementalAttention<TypeParam>::create(this->model_, 0, 0),
                          ErrorCode::zero_capacity);
  expect_error<LimitContext>(IncrementalAttention<TypeParam>::create(this->model_, 0, 13),
                             ErrorCode::capacity_exceeds_max_seq_len);
  EXPECT_EQ(this->model_->live_sessions(), 0U);
}

// One head of width 2, all weights the identity, theta irrelevant at position 0: the first row sees
// itself alone, so its output is its own value.
TEST(IncrementalAttentionByHandTest, TheFirstRowAttendsToItselfAlone) {
  Config config = testing::tiny_config();
  config.n_layers = 1;
  config.n_heads = config.n_kv_heads = 1;
  config.head_dim = config.d_model = 2;
  config.d_ff = 1;
  const std::vector<double> identity = {1, 0, 0, 1};
  std::vector<testing::NamedValues> parameters;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    const bool square = spec.rows == 2 && spec.cols == 2;
    parameters.push_back(
        {spec.name, square ? identity : std::vector<double>(spec.rows * spec.cols, 1.0)});
  }
  const auto model = testing::model_of(config, parameters, DType::f64);
  auto attention = must(IncrementalAttention<double>::create(model, 0, 2));
  auto cache = must(LayerKvCache<double>::create({1, 1, 2, 2, config.max_seq_len, config.rope}));
  const std::vector<double> first = {3, 4};
  const auto step = must(attention.step({first, {1, 1, 2}}, cache));
  EXPECT_EQ(step.weights[0], 1.0);
  EXPECT_TRUE(same_bits(step.rotated_k.span(), first));
  EXPECT_TRUE(same_bits(step.output.span(), first));

  // The second row is turned by one radian. With q = k = (1, 0) turned, its score with itself is
  // 1 / sqrt(2), and with the first row's (3, 4) it is (3 cos 1 + 4 sin 1) / sqrt(2).
  const std::vector<double> second = {1, 0};
  const auto next = must(attention.step({second, {1, 1, 2}}, cache));
  EXPECT_NEAR(next.rotated_q[0], std::cos(1.0), 1e-15);
  EXPECT_NEAR(next.rotated_q[1], std::sin(1.0), 1e-15);
  const double to_first = std::exp((3 * std::cos(1.0) + 4 * std::sin(1.0)) / std::sqrt(2.0));
  const double to_itself = std::exp(1 / std::sqrt(2.0));
  const double weight = to_first / (to_first + to_itself);
  EXPECT_NEAR(next.weights[0], weight, 1e-15);
  EXPECT_NEAR(next.weights[1], 1 - weight, 1e-15);
  EXPECT_NEAR(next.output[0], weight * 3 + (1 - weight) * 1, 1e-14);
  EXPECT_NEAR(next.output[1], weight * 4, 1e-14);
}

}  // namespace
}  // namespace kvlens
