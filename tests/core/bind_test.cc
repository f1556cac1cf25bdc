// Binding a model to a cache checks their whole relationship, and borrows the model while it lasts.

#include <gtest/gtest.h>

#include <cmath>

#include "kvlens/session.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/snapshot.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::must;

class BindTest : public ::testing::Test {
 protected:
  using Cache = KvCache<double>;

  Config config_ = testing::tiny_config();
  SplitMix64 rng_{51};
  std::shared_ptr<Model> model_ = testing::random_model(config_, rng_);

  [[nodiscard]] LayerGeometry geometry() const {
    return {1, config_.n_kv_heads, config_.head_dim, 4, config_.max_seq_len, config_.rope};
  }
  // A cache of two layers, the second changed.
  template <class F>
  std::shared_ptr<Cache> with_second_layer(F change) {
    LayerGeometry second = geometry();
    change(second);
    std::vector<LayerKvCache<double>> layers;
    layers.push_back(must(LayerKvCache<double>::create(geometry())));
    layers.push_back(must(LayerKvCache<double>::create(second)));
    return must(Cache::adopt(*model_, std::move(layers), {}));
  }
  // The context of a bind that must fail and must leave no borrow.
  template <class Context>
  Context expect_bind_error(const std::shared_ptr<Cache>& cache, ErrorCode code,
                            std::string_view message = {}) {
    const auto context = expect_error<Context>(Session<double>::bind(model_, cache), code, message);
    EXPECT_EQ(model_->live_sessions(), 0U);
    EXPECT_EQ(cache.use_count(), 1);
    return context;
  }
  std::vector<std::byte> new_weights(std::string_view name) {
    const ParameterSpec spec = model_->find(name)->spec;
    return testing::random_matrix(spec.rows, spec.cols, DType::f64, rng_);
  }
};

TEST_F(BindTest, ACacheMadeForTheModelBindsAndIsEmpty) {
  const auto session = testing::make_session<double>(model_, 4);
  EXPECT_EQ(session->kv_len(), 0U);
  EXPECT_EQ(session->capacity(), 4U);
  EXPECT_TRUE(session->logits().empty());
  EXPECT_TRUE(session->tokens().empty());
  EXPECT_EQ(session->work(), Work{});
  EXPECT_EQ(session->model(), model_);
  EXPECT_FALSE(session->call_in_progress());
}

TEST_F(BindTest, LayersOfACacheHaveDistinctStorage) {
  const auto cache = must(Cache::create(*model_, 4));
  EXPECT_NE(cache->layers()[0].storage_id(), cache->layers()[1].storage_id());
  EXPECT_EQ(cache->bytes(), 2 * cache->layers()[0].bytes());
}

TEST_F(BindTest, ChunksOfNoRowsAreInvalid) {
  const auto cache = must(Cache::create(*model_, 4));
  const auto context = expect_error<FieldContext>(
      Session<double>::bind(model_, cache, {.chunk_rows = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(context.field, "chunk_rows");
  EXPECT_EQ(model_->live_sessions(), 0U);
}

TEST_F(BindTest, EveryFieldOfTheConfigurationMustBeTheSame) {
  const std::vector<std::pair<const char*, void (*)(Config&)>> changes = {
      {"n_layers", [](Config& c) { c.n_layers = 3; }},
      {"n_heads", [](Config& c) { c.n_heads = 4; }},
      {"n_kv_heads", [](Config& c) { c.n_kv_heads = 1; }},
      {"head_dim", [](Config& c) { c.head_dim = 6; }},
      {"d_model", [](Config& c) { c.d_model = 5; }},
      {"d_ff", [](Config& c) { c.d_ff = 6; }},
      {"vocab_size", [](Config& c) { c.vocab_size = 8; }},
      {"max_seq_len", [](Config& c) { c.max_seq_len = 13; }},
      {"rms_norm_eps", [](Config& c) { c.rms_norm_eps = 1e-6; }},
      {"rope_theta", [](Config& c) { c.rope.theta = 10001.0; }},
      {"sliding_window", [](Config& c) { c.sliding_window = 3; }},
      {"qkv_bias", [](Config& c) { c.qkv_bias = true; }},
      {"qk_norm", [](Config& c) { c.qk_norm = true; }},
      {"tied_embedding", [](Config& c) { c.tied_embedding = false; }},
      {"rope_pairing", [](Config& c) { c.rope.pairing = RopePairing::half_split; }},
      {"rope_freq_factors", [](Config& c) { c.rope.freq_factors = {1.0, 2.0}; }},
  };
  for (const auto& [field, change] : changes) {
    SCOPED_TRACE(field);
    Config other = config_;
    change(other);
    const auto other_model = testing::random_model(other, rng_);
    const auto context = expect_bind_error<FieldContext>(must(Cache::create(*other_model, 4)),
                                                         ErrorCode::config_mismatch);
    EXPECT_EQ(context.field, field);
    EXPECT_NE(context.value, context.allowed);
  }
}

TEST_F(BindTest, FloatsOfTheConfigurationAreComparedByTheirBits) {
  Config other = config_;
  other.rope.theta = std::nextafter(config_.rope.theta, 2e4);
  const auto other_model = testing::random_model(other, rng_);
  const auto context = expect_bind_error<FieldContext>(must(Cache::create(*other_model, 4)),
                                                       ErrorCode::config_mismatch);
  EXPECT_EQ(context.field, "rope_theta");
}

TEST_F(BindTest, AnotherModelOfTheSameConfigurationHasOtherParameters) {
  const auto twin = testing::random_model(config_, rng_);
  const auto context = expect_bind_error<IdentityContext>(must(Cache::create(*twin, 4)),
                                                          ErrorCode::parameter_identity_mismatch);
  EXPECT_EQ(context.index, 0U);
  EXPECT_EQ(context.name, "token_embedding");
}

TEST_F(BindTest, AnUpdatedParameterUnbindsOldCachesAndBindsFreshOnes) {
  const auto old_cache = must(Cache::create(*model_, 4));
  const std::string name = "layers.1.k_proj";
  must(model_->update_parameter(name, DType::f64, new_weights(name)));
  must(model_->update_parameter(name, DType::f64, new_weights(name)));
  const auto context =
      expect_bind_error<RevisionContext>(old_cache, ErrorCode::parameter_revision_mismatch);
  EXPECT_EQ(model_->parameters()[static_cast<std::size_t>(context.index)].spec.name, name);
  EXPECT_EQ(context.name, name);
  EXPECT_EQ(context.captured, 0U);
  EXPECT_EQ(context.current, 2U);
  EXPECT_NE(testing::make_session<double>(model_), nullptr);
}

TEST_F(BindTest, NoParameterChangesWhileASessionLives) {
  const std::string name = "layers.0.v_proj";
  const auto weights = new_weights(name);
  std::vector<double> before(8 * 6);
  must(model_->read_rows(name, 0, before));
  auto first = testing::make_session<double>(model_, 4);
  auto second = testing::make_session<float>(model_);
  const auto context = expect_error<CountContext>(
      model_->update_parameter(name, DType::f64, weights), ErrorCode::parameter_borrowed,
      "cannot update \"layers.0.v_proj\": the model is held by 2 sessions");
  EXPECT_EQ(context.count, 2U);
  std::vector<double> after(before.size());
  must(model_->read_rows(name, 0, after));
  EXPECT_TRUE(testing::same_bits(std::span<const double>(after), before));
  EXPECT_EQ(model_->find(name)->revision, 0U);
  first.reset();
  EXPECT_EQ(model_->live_sessions(), 1U);
  expect_error<CountContext>(model_->update_parameter(name, DType::f64, weights),
                             ErrorCode::parameter_borrowed);
  second.reset();
  must(model_->update_parameter(name, DType::f64, weights));
  EXPECT_EQ(model_->find(name)->revision, 1U);
}

TEST_F(BindTest, ASessionKeepsItsModelAndCacheAlive) {
  const auto session = testing::make_session<double>(model_);
  const std::weak_ptr<Model> watched = model_;
  model_.reset();
  EXPECT_FALSE(watched.expired());
  const std::vector<std::uint32_t> prompt = {1, 2};
  EXPECT_TRUE(testing::succeeded(session->prefill(prompt)));
}

TEST_F(BindTest, TheCacheMustHaveOneLayerForEachOfTheModel) {
  std::vector<LayerKvCache<double>> layers;
  layers.push_back(must(LayerKvCache<double>::create(geometry())));
  const auto context = expect_bind_error<MismatchContext>(
      must(Cache::adopt(*model_, std::move(layers), {})), ErrorCode::layer_count_mismatch,
      "cache has 1 layers, the model has 2");
  EXPECT_EQ(context.expected, 2U);
  EXPECT_EQ(context.actual, 1U);
}

TEST_F(BindTest, LayersOfDifferentLengthsAreIncoherent) {
  const auto cache = with_second_layer([](LayerGeometry&) {});
  const std::vector<double> row(config_.kv_width());
  must(cache->layers()[1].append(row, row));
  const auto context =
      expect_bind_error<LayerMismatchContext>(cache, ErrorCode::incoherent_lengths);
  EXPECT_EQ(context.layer, 1U);
  EXPECT_EQ(context.expected, 0U);
  EXPECT_EQ(context.actual, 1U);
}

TEST_F(BindTest, EachLayersShapeMustBeTheModels) {
  struct Case {
    const char* what;
    ErrorCode code;
    void (*change)(LayerGeometry&);
    std::uint64_t expected;
    std::uint64_t actual;
  };
  const std::vector<Case> cases = {
      {"batch", ErrorCode::layer_batch_mismatch, [](LayerGeometry& g) { g.batch = 2; }, 1, 2},
      {"capacity", ErrorCode::layer_capacity_mismatch, [](LayerGeometry& g) { g.capacity = 5; }, 4,
       5},
      {"n_kv_heads", ErrorCode::layer_geometry_mismatch, [](LayerGeometry& g) { g.n_kv_heads = 3; },
       2, 3},
      {"head_dim", ErrorCode::layer_geometry_mismatch, [](LayerGeometry& g) { g.head_dim = 2; }, 4,
       2},
      {"max_seq_len", ErrorCode::layer_geometry_mismatch,
       [](LayerGeometry& g) { g.max_seq_len = 13; }, 12, 13},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const auto context =
        expect_bind_error<LayerMismatchContext>(with_second_layer(c.change), c.code);
    EXPECT_EQ(context.layer, 1U);
    EXPECT_EQ(context.expected, c.expected);
    EXPECT_EQ(context.actual, c.actual);
  }
}

TEST_F(BindTest, EachLayersKeysMustBeRotatedAsTheModelRotatesThem) {
  const std::vector<void (*)(RopeSpec&)> changes = {
      [](RopeSpec& rope) { rope.pairing = RopePairing::half_split; },
      [](RopeSpec& rope) { rope.theta = std::nextafter(rope.theta, 0.0); },
      [](RopeSpec& rope) { rope.freq_factors = {1.0, 1.0}; },
  };
  for (const auto change : changes) {
    const auto context = expect_bind_error<LayerMismatchContext>(
        with_second_layer([&](LayerGeometry& g) { change(g.rope); }),
        ErrorCode::layer_rope_mismatch);
    EXPECT_EQ(context.layer, 1U);
  }
}

TEST_F(BindTest, AnAdoptedCacheNeedsTheIdsOfItsRows) {
  std::vector<LayerKvCache<double>> layers;
  for (int layer = 0; layer < 2; ++layer) {
    layers.push_back(must(LayerKvCache<double>::create(geometry())));
    const std::vector<double> row(config_.kv_width(), 0.5);
    must(layers.back().append(row, row));
  }
  const auto context = expect_error<FieldContext>(Cache::adopt(*model_, std::move(layers), {}),
                                                  ErrorCode::invalid_argument);
  EXPECT_EQ(context.field, "tokens");
}

// Rows copied by hand from one cache to another go on like the original.
TEST_F(BindTest, AFilledCacheThatIsAdoptedDecodesToTheSameBits) {
  const auto original = testing::make_session<double>(model_, 4);
  const std::vector<std::uint32_t> prompt = {5, 1};
  must(original->prefill(prompt));
  std::vector<LayerKvCache<double>> layers;
  for (const LayerKvCache<double>& from : original->cache()->layers()) {
    auto to = must(LayerKvCache<double>::create(geometry()));
    for (std::size_t row = 0; row < 2; ++row) {
      std::vector<double> keys(config_.kv_width());
      std::vector<double> values(config_.kv_width());
      for (std::size_t head = 0; head < config_.n_kv_heads; ++head) {
        const std::size_t at = head * config_.head_dim;
        from.read_keys(0, head, row, std::span(keys).subspan(at, config_.head_dim));
        from.read_values(0, head, row, std::span(values).subspan(at, config_.head_dim));
      }
      must(to.append(keys, values));
    }
    layers.push_back(std::move(to));
  }
  const auto copy =
      must(Session<double>::bind(model_, must(Cache::adopt(*model_, std::move(layers), prompt))));
  EXPECT_EQ(copy->kv_len(), 2U);
  EXPECT_TRUE(copy->logits().empty());
  must(original->decode(3));
  must(copy->decode(3));
  EXPECT_TRUE(testing::same_bits(copy->logits(), testing::copy_of(original->logits())));
  EXPECT_EQ(testing::snapshot(*copy).hashes, testing::snapshot(*original).hashes);
  EXPECT_EQ(copy->work().decode_tokens, 1U);
  EXPECT_EQ(copy->work().prefill_tokens, 0U);
}

TEST_F(BindTest, ACacheIsCreatedWithinTheModelsPositions) {
  expect_error<NoContext>(Cache::create(*model_, 0), ErrorCode::zero_capacity);
  const auto limit = expect_error<LimitContext>(Cache::create(*model_, 13),
                                                ErrorCode::capacity_exceeds_max_seq_len);
  EXPECT_EQ(limit.value, 13U);
  EXPECT_EQ(limit.limit, 12U);
}

}  // namespace
}  // namespace kvlens
