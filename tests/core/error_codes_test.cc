// Every code of the table is reached: one short way to each, through the public calls. What a call
// leaves behind after an error is specified beside that call's own tests.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <type_traits>

#include "kvlens/generate.h"
#include "kvlens/incremental_attention.h"
#include "kvlens/session.h"
#include "model/binding_checks.h"
#include "support/calls.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/taps.h"

namespace kvlens {
namespace {

using testing::must;
using testing::without_value;

using Ids = std::vector<std::uint32_t>;

struct Way {
  std::size_t context;  // index in ErrorContext of what error.h says the code carries
  std::function<Result<void>()> call;
};

template <class Context, std::size_t I = 0>
constexpr std::size_t index_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, ErrorContext>, Context>) {
    return I;
  } else {
    return index_of<Context, I + 1>();
  }
}

template <class Context>
Way way(std::function<Result<void>()> call) {
  return {index_of<Context>(), std::move(call)};
}

std::shared_ptr<Model> make_model(const Config& config = testing::tiny_config()) {
  SplitMix64 rng(1);
  return testing::random_model(config, rng);
}

LayerGeometry geometry(const Config& config, std::size_t capacity = 4) {
  return {1, config.n_kv_heads, config.head_dim, capacity, config.max_seq_len, config.rope};
}

// A layer cache of 2 rows of 1 head of 2.
Result<void> on_layer(
    std::function<Result<void>(LayerKvCache<double>&)> call,
    std::function<void(LayerGeometry&)> change = [](LayerGeometry&) {}) {
  LayerGeometry small{1, 1, 2, 2, 2, {}};
  change(small);
  auto cache = LayerKvCache<double>::create(small);
  if (!cache) return std::unexpected(cache.error());
  return call(*cache);
}

Result<void> on_builder(std::function<Result<void>(ModelBuilder&)> call) {
  ModelBuilder builder = must(ModelBuilder::create(testing::tiny_config()));
  return call(builder);
}

Result<void> on_session(std::function<Result<void>(Session<double>&)> call) {
  const auto session = testing::make_session<double>(make_model(), 4);
  return call(*session);
}

// One step of attention on `hidden` of the given shape, for a batch of 1 and width 6.
Result<void> attend(std::vector<std::size_t> shape) {
  const Config config = testing::tiny_config();
  auto attention = must(IncrementalAttention<double>::create(make_model(), 0, 4));
  auto cache = must(LayerKvCache<double>::create(geometry(config)));
  const std::vector<double> values(12);
  return without_value(attention.step({values, std::move(shape)}, cache));
}

// Binding to a cache of two layers, of which the second differs.
Result<void> bind_with(std::function<void(LayerGeometry&)> change, bool longer = false) {
  const auto model = make_model();
  const Config& config = model->config();
  LayerGeometry second = geometry(config);
  change(second);
  std::vector<LayerKvCache<double>> layers;
  layers.push_back(must(LayerKvCache<double>::create(geometry(config))));
  layers.push_back(must(LayerKvCache<double>::create(second)));
  const std::vector<double> row(config.kv_width());
  if (longer) must(layers[1].append(row, row));
  return without_value(
      Session<double>::bind(model, must(KvCache<double>::adopt(*model, std::move(layers), {}))));
}

Result<void> make_contrast(std::uint64_t cached_scores, std::uint64_t replay_scores) {
  const std::vector<std::size_t> lengths = {1};
  Work cached;
  cached.attention_score_values = cached_scores;
  cached.qkv_projection_rows = 6;
  Work replay = cached;
  replay.attention_score_values = replay_scores;
  return without_value(contrast(testing::tiny_config(), {lengths, cached}, {lengths, replay}));
}

const std::vector<double> row_of_two = {1, 2};
const std::vector<std::byte> no_bytes;
const Ids prompt = {0, 1};

std::map<ErrorCode, Way> parameter_ways() {
  std::map<ErrorCode, Way> ways;
  ways[ErrorCode::invalid_config] =
      way<FieldContext>([] { return without_value(ModelBuilder::create(Config{})); });
  ways[ErrorCode::missing_parameter] = way<NameContext>(
      [] { return on_builder([](ModelBuilder& b) { return without_value(b.finish()); }); });
  ways[ErrorCode::unknown_parameter] = way<NameContext>(
      [] { return on_builder([](ModelBuilder& b) { return b.add("x", DType::f32, no_bytes); }); });
  ways[ErrorCode::duplicate_parameter] = way<NameContext>([] {
    return on_builder([](ModelBuilder& b) {
      must(b.allocate("final_norm", DType::f32));
      return without_value(b.allocate("final_norm", DType::f32));
    });
  });
  ways[ErrorCode::parameter_shape_mismatch] = way<ShapeContext>([] {
    return on_builder([](ModelBuilder& b) {
      return b.check_shape("layers.0.q_proj", std::vector<std::uint64_t>{6, 8});
    });
  });
  ways[ErrorCode::parameter_size_mismatch] = way<MismatchContext>([] {
    return on_builder([](ModelBuilder& b) { return b.add("final_norm", DType::f32, no_bytes); });
  });
  ways[ErrorCode::unsupported_dtype] = way<NameContext>([] {
    return on_builder(
        [](ModelBuilder& b) { return without_value(b.allocate("final_norm", DType::q8_0)); });
  });
  ways[ErrorCode::non_finite_parameter] = way<ValueContext>([] {
    const std::vector<double> infinite(6, std::numeric_limits<double>::infinity());
    return make_model()->update_parameter("final_norm", DType::f64,
                                          testing::encode(infinite, DType::f64));
  });
  ways[ErrorCode::parameter_borrowed] = way<CountContext>([] {
    const auto model = make_model();
    const auto session = testing::make_session<double>(model);
    return model->update_parameter("final_norm", DType::f64, no_bytes);
  });
  return ways;
}

std::map<ErrorCode, Way> cache_ways() {
  std::map<ErrorCode, Way> ways;
  ways[ErrorCode::out_of_memory] = way<BytesContext>([] {
    memory::fail_after(0);
    auto result = without_value(Buffer<double>::zeroed(1));
    memory::clear_failure();
    return result;
  });
  ways[ErrorCode::size_overflow] = way<NoContext>([] {
    return without_value(Buffer<double>::zeroed(std::numeric_limits<std::size_t>::max()));
  });
  ways[ErrorCode::work_overflow] = way<NoContext>([] {
    Work most;
    most.kv_bytes_read = std::numeric_limits<std::uint64_t>::max();
    return without_value(checked_add(most, most));
  });
  ways[ErrorCode::non_finite_value] = way<ValueContext>([] {
    return on_layer([](LayerKvCache<double>& cache) {
      const std::vector<double> spoiled = {1, std::numeric_limits<double>::quiet_NaN()};
      return cache.append(spoiled, row_of_two);
    });
  });
  const auto nothing = [](LayerKvCache<double>&) -> Result<void> { return {}; };
  ways[ErrorCode::zero_batch] = way<NoContext>(
      [nothing] { return on_layer(nothing, [](LayerGeometry& g) { g.batch = 0; }); });
  ways[ErrorCode::zero_capacity] = way<NoContext>(
      [nothing] { return on_layer(nothing, [](LayerGeometry& g) { g.capacity = 0; }); });
  ways[ErrorCode::capacity_exceeds_max_seq_len] = way<LimitContext>(
      [nothing] { return on_layer(nothing, [](LayerGeometry& g) { g.capacity = 3; }); });
  ways[ErrorCode::cache_full] = way<LimitContext>(
      [] { return on_layer([](LayerKvCache<double>& c) { return c.commit(c.prepared(3)); }); });
  ways[ErrorCode::cache_changed] = way<MismatchContext>([] {
    return on_layer([](LayerKvCache<double>& c) {
      const PreparedRows stale = c.prepared(1);
      must(c.append(row_of_two, row_of_two));
      return c.commit(stale);
    });
  });
  ways[ErrorCode::invalid_length] = way<LimitContext>(
      [] { return on_layer([](LayerKvCache<double>& c) { return c.truncate(1); }); });
  ways[ErrorCode::shape_mismatch] = way<ShapeContext>(
      [] { return on_layer([](LayerKvCache<double>& c) { return c.append(row_of_two, {}); }); });
  return ways;
}

std::map<ErrorCode, Way> attention_and_bind_ways() {
  std::map<ErrorCode, Way> ways;
  ways[ErrorCode::rank_mismatch] = way<MismatchContext>([] { return attend({1, 6}); });
  ways[ErrorCode::not_a_single_token] = way<MismatchContext>([] { return attend({1, 2, 6}); });
  ways[ErrorCode::batch_mismatch] = way<MismatchContext>([] { return attend({2, 1, 6}); });
  ways[ErrorCode::width_mismatch] = way<MismatchContext>([] { return attend({1, 1, 12}); });
  ways[ErrorCode::config_mismatch] = way<FieldContext>([] {
    Config other = testing::tiny_config();
    other.d_ff = 9;
    const auto cache = must(KvCache<double>::create(*make_model(other), 4));
    return without_value(Session<double>::bind(make_model(), cache));
  });
  // Binding compares configurations first, and the same configuration has as many parameters.
  ways[ErrorCode::parameter_count_mismatch] = way<MismatchContext>([] {
    Config other = testing::tiny_config();
    other.tied_embedding = false;
    return check_parameters(*make_model(), *must(KvCache<double>::create(*make_model(other), 4)));
  });
  ways[ErrorCode::parameter_identity_mismatch] = way<IdentityContext>([] {
    const auto cache = must(KvCache<double>::create(*make_model(), 4));
    return without_value(Session<double>::bind(make_model(), cache));
  });
  ways[ErrorCode::parameter_revision_mismatch] = way<RevisionContext>([] {
    const auto model = make_model();
    const auto cache = must(KvCache<double>::create(*model, 4));
    must(model->update_parameter("final_norm", DType::f64, std::vector<std::byte>(48)));
    return without_value(Session<double>::bind(model, cache));
  });
  ways[ErrorCode::layer_count_mismatch] = way<MismatchContext>([] {
    const auto model = make_model();
    return without_value(
        Session<double>::bind(model, must(KvCache<double>::adopt(*model, {}, {}))));
  });
  ways[ErrorCode::incoherent_lengths] =
      way<LayerMismatchContext>([] { return bind_with([](LayerGeometry&) {}, true); });
  ways[ErrorCode::layer_batch_mismatch] =
      way<LayerMismatchContext>([] { return bind_with([](LayerGeometry& g) { g.batch = 2; }); });
  ways[ErrorCode::layer_capacity_mismatch] =
      way<LayerMismatchContext>([] { return bind_with([](LayerGeometry& g) { g.capacity = 5; }); });
  ways[ErrorCode::layer_geometry_mismatch] =
      way<LayerMismatchContext>([] { return bind_with([](LayerGeometry& g) { g.head_dim = 2; }); });
  ways[ErrorCode::layer_rope_mismatch] = way<LayerMismatchContext>(
      [] { return bind_with([](LayerGeometry& g) { g.rope.theta = 5.0; }); });
  return ways;
}

std::map<ErrorCode, Way> call_ways() {
  using Phase = Session<double>::Phase;
  std::map<ErrorCode, Way> ways;
  ways[ErrorCode::empty_prompt] = way<NoContext>(
      [] { return on_session([](auto& s) { return without_value(s.prefill({})); }); });
  ways[ErrorCode::prompt_exceeds_capacity] = way<LimitContext>([] {
    return on_session([](auto& s) { return without_value(s.prefill(Ids{0, 0, 0, 0, 0})); });
  });
  ways[ErrorCode::token_out_of_range] = way<TokenContext>(
      [] { return on_session([](auto& s) { return without_value(s.prefill(Ids{7})); }); });
  ways[ErrorCode::not_empty] = way<CountContext>([] {
    return on_session([](auto& s) {
      must(s.prefill(prompt));
      return without_value(s.prefill(prompt));
    });
  });
  ways[ErrorCode::not_prefilled] =
      way<NoContext>([] { return on_session([](auto& s) { return without_value(s.decode(0)); }); });
  ways[ErrorCode::call_in_progress] = way<NoContext>([] {
    return on_session([](auto& s) {
      must(s.begin(Phase::prefill, prompt));
      return s.begin(Phase::prefill, prompt);
    });
  });
  ways[ErrorCode::savepoint_ended] = way<NoContext>([] {
    return on_session([](auto& s) {
      const auto first = must(s.savepoint());
      const auto second = must(s.savepoint());
      must(s.rollback(first));
      return s.rollback(second);
    });
  });
  ways[ErrorCode::no_call_in_progress] =
      way<NoContext>([] { return on_session([](auto& s) { return without_value(s.finish()); }); });
  ways[ErrorCode::interrupted] = way<SiteContext>([] {
    return on_session([](auto& s) {
      testing::FaultTap<double> tap(0);
      return without_value(s.prefill(prompt, &tap));
    });
  });
  // One token: 2 layers of 2 heads make 4 entries, cached or replayed.
  ways[ErrorCode::count_mismatch] = way<FieldContext>([] { return make_contrast(4, 5); });
  ways[ErrorCode::cached_exceeds_replay] = way<LimitContext>([] { return make_contrast(5, 4); });
  ways[ErrorCode::invalid_sampling] =
      way<FieldContext>([] { return validate(SamplingConfig{.greedy = false, .temperature = 0}); });
  ways[ErrorCode::invalid_argument] =
      way<FieldContext>([] { return without_value(ThreadPool::create(0)); });
  return ways;
}

std::map<ErrorCode, Way> ways_to_every_code() {
  std::map<ErrorCode, Way> ways = parameter_ways();
  ways.merge(cache_ways());
  ways.merge(attention_and_bind_ways());
  ways.merge(call_ways());
  return ways;
}

TEST(ErrorCodesTest, EveryCodeIsReachedWithTheContextThatTheTableStates) {
  const auto ways = ways_to_every_code();
  for (std::size_t index = 0; index < error_code_names().size(); ++index) {
    const auto code = static_cast<ErrorCode>(index);
    SCOPED_TRACE(error_code_name(code));
    const auto found = ways.find(code);
    if (found == ways.end()) {
      ADD_FAILURE() << "no test reaches it";
      continue;
    }
    const auto result = found->second.call();
    ASSERT_FALSE(result);
    EXPECT_EQ(error_code_name(result.error().code), error_code_name(code))
        << result.error().message;
    EXPECT_EQ(result.error().context.index(), found->second.context);
  }
}

TEST(ErrorCodesTest, EveryMessageIsOneSentenceWithoutFullStop) {
  for (const auto& [code, one] : ways_to_every_code()) {
    SCOPED_TRACE(error_code_name(code));
    const auto result = one.call();
    ASSERT_FALSE(result);
    const std::string& message = result.error().message;
    ASSERT_FALSE(message.empty());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_FALSE(message.ends_with('.')) << message;
    EXPECT_FALSE(message.front() >= 'A' && message.front() <= 'Z') << message;
  }
}

TEST(ErrorCodesTest, NamesAreSnakeCaseAndDistinct) {
  const auto names = error_code_names();
  std::map<std::string_view, std::size_t> indices;
  for (std::size_t index = 0; index < names.size(); ++index) {
    EXPECT_TRUE(indices.emplace(names[index], index).second) << names[index];
    EXPECT_EQ(error_code_name(static_cast<ErrorCode>(index)), names[index]);
    EXPECT_EQ(names[index].find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos)
        << names[index];
  }
}

TEST(ErrorTest, WrappingKeepsTheCodeAndContextPrefixesTheSentenceAndKeepsTheCause) {
  const Result<void> inner = fail(ErrorCode::cache_full, LimitContext{5, 4}, "cache is full");
  const Result<void> middle = wrap(inner.error(), "key RoPE", SiteContext{"k_rope", 3, 7});
  const Result<void> outer =
      wrap(middle.error(), "decoder layer 3", SiteContext{"attention_output", 9, 9});
  const Error& error = outer.error();
  EXPECT_EQ(error.code, ErrorCode::cache_full);
  EXPECT_EQ(std::get<LimitContext>(error.context).value, 5U);
  EXPECT_EQ(error.message, "decoder layer 3: key RoPE: cache is full");
  ASSERT_NE(error.cause, nullptr);
  EXPECT_EQ(error.cause->message, "key RoPE: cache is full");
  EXPECT_EQ(testing::root_cause(error).message, "cache is full");
  // The innermost site is where it happened.
  ASSERT_TRUE(error.site.has_value());
  EXPECT_EQ(error.site->stage, "k_rope");
  EXPECT_EQ(error.site->layer, 3U);
  EXPECT_EQ(error.site->position, 7U);
}

}  // namespace
}  // namespace kvlens
