// The cache is only an optimisation: cached logits equal those of a complete-prefix replay bit for
// bit, however the tokens are split into calls, chunks and threads.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "kvlens/session.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/schedules.h"
#include "support/snapshot.h"

namespace kvlens {
namespace {

using testing::Composition;
using testing::must;
using testing::run_part;
using testing::same_bits;

template <class T>
class ReplayEqualityTest : public ::testing::Test {};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(ReplayEqualityTest, ComputeTypes);

constexpr std::array<std::size_t, 5> chunk_sizes = {1, 2, 3, 7, 32};

// Logits of every position, [tokens, vocab_size].
template <class T>
std::vector<T> replayed_logits(const std::shared_ptr<Model>& model,
                               std::span<const std::uint32_t> tokens,
                               DType kv_dtype = dtype_of<T>) {
  const auto session = testing::make_session<T>(model, model->config().max_seq_len, {}, kv_dtype);
  const auto replay = must(session->replay(tokens, /*all_logits=*/true));
  return testing::copy_of(replay.logits.span());
}

// Runs the calls of `composition` and compares the logits of each with the replay's at that
// position.
template <class T>
void expect_each_call_equals(Session<T>& session, std::span<const std::uint32_t> tokens,
                             const Composition& composition, const std::vector<T>& logits,
                             bool stepwise = false) {
  const std::size_t vocab = session.model()->config().vocab_size;
  std::size_t done = 0;
  for (const std::size_t part : composition.parts) {
    const auto step =
        run_part(session, tokens.subspan(done, part), composition.decode_singles, stepwise);
    ASSERT_TRUE(testing::succeeded(step));
    done += part;
    ASSERT_TRUE(same_bits(step->logits, std::span(logits).subspan((done - 1) * vocab, vocab)))
        << "after " << done << " tokens, " << describe(composition);
  }
}

TYPED_TEST(ReplayEqualityTest, EveryKindOfDecoderEqualsItsReplayForEverySplitOfFiveTokens) {
  using T = TypeParam;
  SplitMix64 rng(7);
  const std::vector<std::uint32_t> tokens = {3, 0, 6, 6, 1};
  for (const auto& [name, config] : testing::config_variants()) {
    SCOPED_TRACE(name);
    const auto model = testing::random_model(config, rng);
    const std::vector<T> logits = replayed_logits<T>(model, tokens);
    for (const bool decode_singles : {true, false}) {
      for (const Composition& composition : testing::all_compositions(5, decode_singles)) {
        for (const std::size_t chunk_rows : {1U, 2U, 32U}) {
          const auto session =
              testing::make_session<T>(model, config.max_seq_len, {.chunk_rows = chunk_rows});
          expect_each_call_equals(*session, tokens, composition, logits);
        }
      }
    }
  }
}

TYPED_TEST(ReplayEqualityTest, ReplayOfAPrefixIsTheBeginningOfTheReplayOfMore) {
  using T = TypeParam;
  SplitMix64 rng(8);
  for (const auto& [name, config] : testing::config_variants()) {
    SCOPED_TRACE(name);
    const auto model = testing::random_model(config, rng);
    const auto tokens = testing::random_tokens(rng, config.max_seq_len, config.vocab_size);
    const std::vector<T> all = replayed_logits<T>(model, tokens);
    const auto session = testing::make_session<T>(model);
    for (std::size_t n = 1; n <= tokens.size(); ++n) {
      const auto replay = must(session->replay(std::span(tokens).first(n)));
      EXPECT_TRUE(same_bits(
          std::as_const(replay.logits).span(),
          std::span<const T>(all).subspan((n - 1) * config.vocab_size, config.vocab_size)));
    }
  }
}

// The session that everything is compared with: one row at a time, on the calling thread.
template <class T>
testing::Snapshot<T> serial_state(const std::shared_ptr<Model>& model,
                                  std::span<const std::uint32_t> tokens,
                                  const Composition& composition, DType kv_dtype = dtype_of<T>) {
  const auto session =
      testing::make_session<T>(model, model->config().max_seq_len, {.chunk_rows = 1}, kv_dtype);
  std::size_t done = 0;
  for (const std::size_t part : composition.parts) {
    must(run_part(*session, tokens.subspan(done, part), composition.decode_singles, false));
    done += part;
  }
  return testing::snapshot(*session);
}

TYPED_TEST(ReplayEqualityTest, RandomDecodersSplitAtRandomEqualTheirReplayAndTheSerialPath) {
  using T = TypeParam;
  constexpr std::uint64_t first_seed = 20260;
  constexpr std::uint64_t n_models = 240;
  const std::array pools = {testing::make_pool(0), testing::make_pool(1), testing::make_pool(2),
                            testing::make_pool(3), testing::make_pool(8)};
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + n_models - 1));
  for (std::uint64_t seed = first_seed; seed < first_seed + n_models; ++seed) {
    SplitMix64 rng(seed);
    const Config config = testing::random_config(rng);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + testing::describe(config));
    const auto model =
        testing::random_model(config, rng, rng.next() % 2 == 0 ? DType::f64 : DType::f32);
    const std::size_t n = testing::random_size(rng, 1, config.max_seq_len);
    const auto tokens = testing::random_tokens(rng, n, config.vocab_size);
    const bool halved = std::is_same_v<T, float> && rng.next() % 2 == 0;
    const DType kv_dtype = halved ? DType::bf16 : dtype_of<T>;
    const std::vector<T> logits = replayed_logits<T>(model, tokens, kv_dtype);
    for (int split = 0; split < 3; ++split) {
      const Composition composition = testing::random_composition(rng, n);
      const SessionOptions options = {.chunk_rows = chunk_sizes[rng.next() % chunk_sizes.size()],
                                      .pool = pools[rng.next() % pools.size()]};
      const auto session = testing::make_session<T>(model, config.max_seq_len, options, kv_dtype);
      const bool stepwise = rng.next() % 2 == 0;
      expect_each_call_equals(*session, tokens, composition, logits, stepwise);
      ASSERT_TRUE(testing::same_content(testing::snapshot(*session),
                                        serial_state<T>(model, tokens, composition, kv_dtype)))
          << describe(composition) << ", chunk_rows " << options.chunk_rows << ", rows in "
          << dtype_info(kv_dtype).name;
    }
    if (this->HasFailure()) return;
  }
}

// Long enough for several of the blocks of positions whose weights are rounded together, with
// windows that begin anywhere in them.
TEST(ReplayEqualityQ8Test, RandomDecodersWithRowsInQ8_0EqualTheirReplayAndTheSerialPath) {
  constexpr std::uint64_t first_seed = 80;
  constexpr std::uint64_t n_models = 24;
  const std::array pools = {testing::make_pool(0), testing::make_pool(2), testing::make_pool(3),
                            testing::make_pool(8)};
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + n_models - 1));
  for (std::uint64_t seed = first_seed; seed < first_seed + n_models; ++seed) {
    SplitMix64 rng(seed);
    Config config = testing::random_config(rng);
    config.head_dim = 32 * testing::random_size(rng, 1, 3);
    config.rope.freq_factors.clear();
    config.max_seq_len = testing::random_size(rng, 60, 200);
    if (config.sliding_window != 0) config.sliding_window = testing::random_size(rng, 1, 150);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + testing::describe(config));
    const auto model = testing::random_model(config, rng, DType::f32);
    const auto tokens = testing::random_tokens(rng, config.max_seq_len, config.vocab_size);
    const std::vector<float> logits = replayed_logits<float>(model, tokens, DType::q8_0);
    const Composition composition = testing::random_composition(rng, tokens.size());
    const SessionOptions options = {.chunk_rows = chunk_sizes[rng.next() % chunk_sizes.size()],
                                    .pool = pools[rng.next() % pools.size()]};
    const auto session =
        testing::make_session<float>(model, config.max_seq_len, options, DType::q8_0);
    expect_each_call_equals(*session, tokens, composition, logits, rng.next() % 2 == 0);
    ASSERT_TRUE(testing::same_content(testing::snapshot(*session),
                                      serial_state<float>(model, tokens, composition, DType::q8_0)))
        << describe(composition) << ", chunk_rows " << options.chunk_rows;
    if (HasFailure()) return;
  }
}

TYPED_TEST(ReplayEqualityTest, ChunkSizeAndThreadsChangeNoBitAndNoCounterOfOnePrefill) {
  using T = TypeParam;
  SplitMix64 rng(11);
  for (const auto& [name, config] : testing::config_variants()) {
    SCOPED_TRACE(name);
    const auto model = testing::random_model(config, rng);
    const auto tokens = testing::random_tokens(rng, config.max_seq_len, config.vocab_size);
    const auto serial = serial_state<T>(model, tokens, {{tokens.size()}});
    for (const std::size_t chunk_rows : chunk_sizes) {
      for (const std::size_t threads : {0U, 1U, 2U, 3U, 8U}) {
        const auto session = testing::make_session<T>(
            model, config.max_seq_len,
            {.chunk_rows = chunk_rows, .pool = testing::make_pool(threads)});
        const auto step = must(session->prefill(tokens));
        EXPECT_TRUE(testing::same_content(testing::snapshot(*session), serial))
            << "chunk_rows " << chunk_rows << ", threads " << threads;
        EXPECT_TRUE(testing::same_work(step.work, serial.work));
      }
    }
  }
}

TYPED_TEST(ReplayEqualityTest, ReplayDoesNotDependOnChunkSizeOrThreads) {
  using T = TypeParam;
  SplitMix64 rng(12);
  for (const auto& [name, config] : testing::config_variants()) {
    SCOPED_TRACE(name);
    const auto model = testing::random_model(config, rng);
    const auto tokens = testing::random_tokens(rng, config.max_seq_len, config.vocab_size);
    const std::vector<T> logits = replayed_logits<T>(model, tokens);
    const Work work = must(testing::make_session<T>(model)->replay(tokens, true)).work;
    for (const std::size_t chunk_rows : chunk_sizes) {
      const auto session = testing::make_session<T>(
          model, config.max_seq_len, {.chunk_rows = chunk_rows, .pool = testing::make_pool(3)});
      const auto replay = must(session->replay(tokens, true));
      EXPECT_TRUE(same_bits(replay.logits.span(), std::span<const T>(logits)));
      EXPECT_TRUE(testing::same_work(replay.work, work));
    }
  }
}

TYPED_TEST(ReplayEqualityTest, ASlidingWindowAsLongAsTheContextIsNoWindow) {
  using T = TypeParam;
  SplitMix64 rng(13);
  Config config = testing::tiny_config();
  SplitMix64 same(99);
  const auto without = testing::random_model(config, same);
  config.sliding_window = config.max_seq_len;
  same = SplitMix64(99);
  const auto with = testing::random_model(config, same);
  const auto tokens = testing::random_tokens(rng, config.max_seq_len, config.vocab_size);
  EXPECT_TRUE(same_bits(std::span<const T>(replayed_logits<T>(with, tokens)),
                        replayed_logits<T>(without, tokens)));
}

// It is half the bytes, in memory and read, and nearly the same logits; but not the same.
TEST(BFloat16CacheTest, HalvesTheBytesAndRoundsWhatAttentionReads) {
  SplitMix64 rng(15);
  const Config config = testing::tiny_config();
  const auto model = testing::random_model(config, rng);
  const auto tokens = testing::random_tokens(rng, config.max_seq_len, config.vocab_size);
  const auto whole = testing::make_session<float>(model);
  const auto halved = testing::make_session<float>(model, config.max_seq_len, {}, DType::bf16);
  const auto a = must(whole->prefill(tokens));
  const auto b = must(halved->prefill(tokens));
  EXPECT_EQ(2 * halved->cache()->bytes(), whole->cache()->bytes());
  EXPECT_EQ(2 * b.work.kv_bytes_read, a.work.kv_bytes_read);
  EXPECT_EQ(2 * b.work.kv_bytes_written, a.work.kv_bytes_written);
  EXPECT_FALSE(same_bits(b.logits, testing::copy_of(a.logits)));
  float largest = 0;
  for (const float logit : a.logits) largest = std::max(largest, std::abs(logit));
  for (std::size_t i = 0; i < a.logits.size(); ++i) {
    EXPECT_NEAR(a.logits[i], b.logits[i], 0.02 * largest);
  }
}

// A row past the window must not see the first token; one within it must.
TYPED_TEST(ReplayEqualityTest, ASlidingWindowForgetsTokensThatLeftItInTheFirstLayer) {
  using T = TypeParam;
  Config config = testing::tiny_config();
  config.n_layers = 1;
  config.sliding_window = 3;
  SplitMix64 rng(14);
  const auto model = testing::random_model(config, rng);
  const std::vector<std::uint32_t> a = {1, 2, 3, 4, 5};
  const std::vector<std::uint32_t> b = {6, 2, 3, 4, 5};
  const std::vector<T> with_a = replayed_logits<T>(model, a);
  const std::vector<T> with_b = replayed_logits<T>(model, b);
  const std::size_t vocab = config.vocab_size;
  const auto row = [&](const std::vector<T>& logits, std::size_t position) {
    return std::span<const T>(logits).subspan(position * vocab, vocab);
  };
  EXPECT_FALSE(same_bits(row(with_a, 2), row(with_b, 2)));
  EXPECT_TRUE(same_bits(row(with_a, 3), row(with_b, 3)));
  EXPECT_TRUE(same_bits(row(with_a, 4), row(with_b, 4)));
}

}  // namespace
}  // namespace kvlens
