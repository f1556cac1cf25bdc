// All or nothing when memory runs out: every allocation of every call is refused in turn. The call
// fails with out_of_memory, leaks nothing, changes nothing, and succeeds once memory is back.

#include <gtest/gtest.h>

#include <functional>

#include "kvlens/evidence.h"
#include "kvlens/generate.h"
#include "kvlens/incremental_attention.h"
#include "kvlens/memory.h"
#include "kvlens/session.h"
#include "support/calls.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/snapshot.h"

namespace kvlens {
namespace {

using testing::must;
using testing::same_state;
using testing::snapshot;

// Refuses allocation 0, then 1, ... of `call` until it succeeds; `check_unchanged` runs after each
// failure. Returns how many allocations were refused.
std::size_t refuse_each_allocation(const std::function<Result<void>()>& call,
                                   const std::function<void()>& check_unchanged) {
  const std::uint64_t buffers = memory::live_buffers();
  const std::uint64_t bytes = memory::live_bytes();
  constexpr std::size_t patience = 10000;
  for (std::size_t allowed = 0; allowed < patience; ++allowed) {
    memory::fail_after(allowed);
    const Result<void> result = call();
    memory::clear_failure();
    if (result) return allowed;
    const auto context = testing::expect_error<BytesContext>(result, ErrorCode::out_of_memory);
    EXPECT_GT(context.bytes, 0U);
    EXPECT_EQ(memory::live_buffers(), buffers) << "after " << allowed << " allocations";
    EXPECT_EQ(memory::live_bytes(), bytes) << "after " << allowed << " allocations";
    check_unchanged();
    if (::testing::Test::HasFailure()) return allowed;
  }
  ADD_FAILURE() << "never succeeded";
  return patience;
}

template <class T>
class AllocationTest : public ::testing::Test {
 protected:
  static Config config() { return testing::config_variants().back().config; }
  SplitMix64 rng_{41};
  std::shared_ptr<Model> model_ = testing::random_model(config(), rng_);
};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(AllocationTest, ComputeTypes);

TYPED_TEST(AllocationTest, CreatingACacheFailsWhole) {
  std::shared_ptr<KvCache<TypeParam>> cache;
  const std::size_t refused = refuse_each_allocation(
      [&]() -> Result<void> {
        auto made = KvCache<TypeParam>::create(*this->model_, 5);
        if (!made) return std::unexpected(made.error());
        cache = *made;
        return {};
      },
      [&] { EXPECT_EQ(cache, nullptr); });
  EXPECT_GE(refused, 2 * this->config().n_layers);
  EXPECT_EQ(cache->capacity(), 5U);
}

TYPED_TEST(AllocationTest, BindingFailsWholeAndBorrowsNothing) {
  using T = TypeParam;
  const auto cache = must(KvCache<T>::create(*this->model_, 8));
  std::unique_ptr<Session<T>> session;
  const std::size_t refused = refuse_each_allocation(
      [&]() -> Result<void> {
        auto bound = Session<T>::bind(this->model_, cache);
        if (!bound) return std::unexpected(bound.error());
        session = std::move(*bound);
        return {};
      },
      [&] {
        EXPECT_EQ(this->model_->live_sessions(), 0U);
        EXPECT_EQ(cache.use_count(), 1);
      });
  EXPECT_GT(refused, 5U);
  EXPECT_EQ(this->model_->live_sessions(), 1U);
}

TYPED_TEST(AllocationTest, EachCallOfASessionFailsWholeAndGoesOnToTheSameBits) {
  using T = TypeParam;
  for (const auto& call : testing::tapped_calls<T>()) {
    SCOPED_TRACE(call.name);
    const auto session = testing::make_session<T>(this->model_);
    const auto plain = testing::make_session<T>(this->model_);
    must(call.before(*session));
    must(call.before(*plain));
    const auto before = snapshot(*session);
    const std::size_t refused =
        refuse_each_allocation([&] { return call.call(*session, nullptr); },
                               [&] { ASSERT_TRUE(same_state(snapshot(*session), before)); });
    if (call.name.ends_with("replay")) {
      EXPECT_GT(refused, 5U);
    } else {
      EXPECT_EQ(refused, 0U) << "a session has what its calls need since it was bound";
    }
    must(call.call(*plain, nullptr));
    must(session->decode(0));
    must(plain->decode(0));
    EXPECT_TRUE(testing::same_content(snapshot(*session), snapshot(*plain)));
  }
}

TYPED_TEST(AllocationTest, ACallWhoseEvidenceFindsNoMemoryFailsWhole) {
  using T = TypeParam;
  for (const auto& call : testing::tapped_calls<T>()) {
    SCOPED_TRACE(call.name);
    const auto session = testing::make_session<T>(this->model_);
    const auto plain = testing::make_session<T>(this->model_);
    must(call.before(*session));
    must(call.before(*plain));
    const auto before = snapshot(*session);
    const std::size_t refused = refuse_each_allocation(
        [&]() -> Result<void> {
          EvidenceRecorder<T> recorder(Capture::all);
          return call.call(*session, &recorder);
        },
        [&] { ASSERT_TRUE(same_state(snapshot(*session), before)); });
    EXPECT_GT(refused, 2U * 18U);
    must(call.call(*plain, nullptr));
    EXPECT_TRUE(testing::same_content(snapshot(*session), snapshot(*plain)));
  }
}

TYPED_TEST(AllocationTest, GenerationFailsWholeAndLeavesTheRng) {
  using T = TypeParam;
  const std::vector<std::uint32_t> prompt = {3, 1};
  const GenerateRequest request{
      .prompt = prompt,
      .max_new_tokens = 4,
      .sampling = {.greedy = false, .temperature = 0.9, .top_k = 5, .repetition_penalty = 1.1}};
  const auto session = testing::make_session<T>(this->model_);
  const auto before = snapshot(*session);
  SplitMix64 rng(77);
  Generation kept;
  const std::size_t refused = refuse_each_allocation(
      [&]() -> Result<void> {
        auto made = generate(*session, request, rng);
        if (!made) return std::unexpected(made.error());
        kept = std::move(*made);
        return {};
      },
      [&] {
        EXPECT_EQ(rng.state(), 77U);
        ASSERT_TRUE(same_state(snapshot(*session), before));
      });
  EXPECT_GE(refused, 4U);
  SplitMix64 plain_rng(77);
  const auto plain = testing::make_session<T>(this->model_);
  EXPECT_EQ(kept.tokens, must(generate(*plain, request, plain_rng)).tokens);
  EXPECT_EQ(rng.state(), plain_rng.state());
}

TYPED_TEST(AllocationTest, IncrementalAttentionFailsWhole) {
  using T = TypeParam;
  std::unique_ptr<IncrementalAttention<T>> attention;
  refuse_each_allocation(
      [&]() -> Result<void> {
        auto made = IncrementalAttention<T>::create(this->model_, 1, 6);
        if (!made) return std::unexpected(made.error());
        attention = std::make_unique<IncrementalAttention<T>>(std::move(*made));
        return {};
      },
      [&] { EXPECT_EQ(this->model_->live_sessions(), 0U); });
  const Config config = this->config();
  auto cache = must(LayerKvCache<T>::create(
      {2, config.n_kv_heads, config.head_dim, 6, config.max_seq_len, config.rope}));
  std::vector<T> hidden(2 * config.d_model);
  for (T& value : hidden) value = static_cast<T>(this->rng_.unit());
  const std::size_t refused = refuse_each_allocation(
      [&] {
        return testing::without_value(attention->step({hidden, {2, 1, config.d_model}}, cache));
      },
      [&] { EXPECT_EQ(cache.len(), 0U); });
  EXPECT_GE(refused, 9U);
  EXPECT_EQ(cache.len(), 1U);
}

TYPED_TEST(AllocationTest, SamplingFailsWholeAndLeavesTheRng) {
  const std::vector<TypeParam> logits = {1, 3, 2};
  const std::vector<std::uint32_t> recent = {1};
  SplitMix64 rng(5);
  const std::size_t refused = refuse_each_allocation(
      [&] {
        return testing::without_value(
            sample(std::span<const TypeParam>(logits),
                   {.greedy = false, .top_p = 0.9, .repetition_penalty = 1.2}, rng, recent));
      },
      [&] { EXPECT_EQ(rng.state(), 5U); });
  EXPECT_GT(refused, 0U);
  EXPECT_NE(rng.state(), 5U);
  EXPECT_GT(
      refuse_each_allocation(
          [&] { return testing::without_value(top_tokens(std::span<const TypeParam>(logits), 2)); },
          [] {}),
      0U);
}

TEST(ModelAllocationTest, ARandomModelFailsWholeAndLeavesTheRng) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    SplitMix64 rng(9);
    std::shared_ptr<Model> model;
    const std::size_t refused = refuse_each_allocation(
        [&]() -> Result<void> {
          auto made = Model::random(testing::tiny_config(), rng, dtype);
          if (!made) return std::unexpected(made.error());
          model = *made;
          return {};
        },
        [&] { EXPECT_EQ(rng.state(), 9U); });
    EXPECT_GE(refused, model->parameters().size());
    EXPECT_NE(rng.state(), 9U);
  }
}

TEST(ModelAllocationTest, AnUpdateFailsWholeAndKeepsBytesAndRevision) {
  SplitMix64 rng(10);
  // Q4_0 may be kept interleaved, which needs scratch memory of its own.
  const Config config = testing::random_config(rng, 32);
  for (const DType dtype : {DType::f32, DType::q4_0, DType::q8_0}) {
    const auto model = testing::random_model(config, rng, dtype);
    const ParameterSpec spec = model->find("layers.0.q_proj")->spec;
    const auto bytes = testing::random_matrix(spec.rows, spec.cols, dtype, rng);
    std::vector<double> before(spec.rows * spec.cols);
    must(model->read_rows("layers.0.q_proj", 0, before));
    const std::size_t refused = refuse_each_allocation(
        [&] { return model->update_parameter("layers.0.q_proj", dtype, bytes); },
        [&] {
          std::vector<double> after(before.size());
          must(model->read_rows("layers.0.q_proj", 0, after));
          EXPECT_TRUE(testing::same_bits(std::span<const double>(after), before));
          EXPECT_EQ(model->find("layers.0.q_proj")->revision, 0U);
        });
    EXPECT_GT(refused, 0U);
    EXPECT_EQ(model->find("layers.0.q_proj")->revision, 1U);
  }
}

TEST(ModelAllocationTest, ABuilderWhoseAddFailedCanGoOn) {
  SplitMix64 rng(11);
  const Config config = testing::random_config(rng, 32);
  ModelBuilder builder = must(ModelBuilder::create(config));
  const auto specs = builder.specs();
  for (const ParameterSpec& spec : specs) {
    const DType dtype = spec.is_vector ? DType::f32 : DType::q8_0;
    const auto bytes = testing::random_matrix(spec.rows, spec.cols, dtype, rng);
    const std::size_t refused =
        refuse_each_allocation([&] { return builder.add(spec.name, dtype, bytes); }, [] {});
    EXPECT_GT(refused, 0U);
  }
  EXPECT_TRUE(testing::succeeded(builder.finish()));
}

TEST(BufferTest, CountsWhatIsAlive) {
  const std::uint64_t buffers = memory::live_buffers();
  const std::uint64_t bytes = memory::live_bytes();
  {
    const auto buffer = must(Buffer<double>::zeroed(10));
    EXPECT_EQ(memory::live_buffers(), buffers + 1);
    EXPECT_EQ(memory::live_bytes(), bytes + 80);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % memory::alignment, 0U);
    for (const double value : buffer.span()) EXPECT_EQ(value, 0.0);
  }
  EXPECT_EQ(memory::live_buffers(), buffers);
  EXPECT_EQ(memory::live_bytes(), bytes);
}

TEST(BufferTest, MovingHandsOverTheMemory) {
  const std::uint64_t buffers = memory::live_buffers();
  auto first = must(Buffer<float>::zeroed(4));
  const float* data = first.data();
  Buffer<float> second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(memory::live_buffers(), buffers + 1);
  second = must(Buffer<float>::zeroed(2));
  EXPECT_EQ(memory::live_buffers(), buffers + 1);
  EXPECT_EQ(second.size(), 2U);
}

TEST(BufferTest, TheLargestObjectIsAskedForAndOneElementMoreOverflows) {
  const std::uint64_t buffers = memory::live_buffers();
  constexpr std::size_t most = memory::largest_object / sizeof(double);
  memory::fail_after(0);
  const auto context =
      testing::expect_error<BytesContext>(Buffer<double>::zeroed(most), ErrorCode::out_of_memory);
  EXPECT_EQ(context.bytes, most * sizeof(double));
  testing::expect_error<NoContext>(Buffer<double>::zeroed(most + 1), ErrorCode::size_overflow);
  // The same limit for a tensor, whose dimensions fit one by one.
  constexpr std::size_t rows = (most + 1) / 1024;
  testing::expect_error<BytesContext>(Buffer<double>::zeroed({1024, rows - 1}),
                                      ErrorCode::out_of_memory);
  testing::expect_error<NoContext>(Buffer<double>::zeroed({1024, rows}), ErrorCode::size_overflow);
  memory::clear_failure();
  EXPECT_EQ(memory::live_buffers(), buffers);
}

TEST(BufferTest, ATensorHasTheProductOfItsDimensionsAndNoneWithoutOne) {
  EXPECT_EQ(must(Buffer<float>::zeroed({3, 4, 5})).size(), 60U);
  constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(must(Buffer<float>::zeroed({largest, 0, largest})).size(), 0U);
  testing::expect_error<NoContext>(Buffer<std::byte>::zeroed({largest, largest}),
                                   ErrorCode::size_overflow,
                                   std::to_string(largest) + " x " + std::to_string(largest) +
                                       " elements do not fit the address space");
}

TEST(BufferTest, NoElementsNeedNoMemory) {
  const std::uint64_t buffers = memory::live_buffers();
  const auto buffer = must(Buffer<double>::zeroed(0));
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_EQ(memory::live_buffers(), buffers);
}

}  // namespace
}  // namespace kvlens
