// Weights in every storage type: cached equals replayed bit for bit, whatever the split.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "kvlens/session.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/schedules.h"
#include "support/snapshot.h"

namespace kvlens {
namespace {

using testing::must;
using testing::run_part;

struct StorageType {
  DType dtype;
  std::string name;
};

std::vector<StorageType> storage_types() {
  return {
#define KVLENS_TYPE(name, values, bytes) {DType::name, #name},
      KVLENS_DTYPES(KVLENS_TYPE)
#undef KVLENS_TYPE
  };
}

class StorageTypeTest : public ::testing::TestWithParam<StorageType> {};

template <class T>
void expect_split_equals_replay(const StorageType& type, std::uint64_t seed) {
  SplitMix64 rng(seed);
  const Config config = testing::random_config(
      rng, is_quantised(type.dtype) ? dtype_info(type.dtype).block_values : 1);
  SCOPED_TRACE("seed " + std::to_string(seed) + ": " + testing::describe(config));
  const auto model = testing::random_model(config, rng, type.dtype);
  const std::size_t n = config.max_seq_len;
  const auto tokens = testing::random_tokens(rng, n, config.vocab_size);
  const auto reference = testing::make_session<T>(model, n, {.chunk_rows = 1});
  const auto replay = must(reference->replay(tokens, /*all_logits=*/true));
  must(reference->prefill(tokens));
  for (const std::size_t chunk_rows : {2U, 7U}) {
    const auto session = testing::make_session<T>(
        model, n, {.chunk_rows = chunk_rows, .pool = testing::make_pool(2)});
    const auto composition = testing::random_composition(rng, n);
    std::size_t done = 0;
    for (const std::size_t part : composition.parts) {
      const auto step =
          must(run_part(*session, std::span<const std::uint32_t>(tokens).subspan(done, part),
                        composition.decode_singles, false));
      done += part;
      ASSERT_TRUE(testing::same_bits(
          step.logits,
          replay.logits.span().subspan((done - 1) * config.vocab_size, config.vocab_size)))
          << describe(composition) << ", chunk_rows " << chunk_rows;
    }
    const auto expected = testing::snapshot(*reference);
    EXPECT_EQ(testing::snapshot(*session).hashes, expected.hashes);
  }
}

TEST_P(StorageTypeTest, CachedEqualsReplayedInFloatAndDouble) {
  const std::uint64_t first_seed = 500;
  const std::uint64_t n_models = dtype_info(GetParam().dtype).block_values == 256 ? 3 : 12;
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + n_models - 1));
  for (std::uint64_t seed = first_seed; seed < first_seed + n_models; ++seed) {
    expect_split_equals_replay<float>(GetParam(), seed);
    expect_split_equals_replay<double>(GetParam(), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, StorageTypeTest, ::testing::ValuesIn(storage_types()),
                         [](const auto& parameter) { return parameter.param.name; });

// The same weight values give the same bits however they are stored, as long as they are exact
// there.
TEST(StorageTypesTest, EighthsStoredAsF64F32F16AndBf16GiveTheSameBits) {
  const Config config = testing::tiny_config();
  std::vector<std::vector<float>> logits;
  const std::vector<std::uint32_t> tokens = {1, 5, 2};
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    SplitMix64 rng(21);
    ModelBuilder builder = must(ModelBuilder::create(config));
    const auto specs = builder.specs();
    for (const ParameterSpec& spec : specs) {
      std::vector<double> values(spec.rows * spec.cols);
      for (double& value : values) {
        value = static_cast<double>(testing::random_size(rng, 1, 7)) / 8.0;
      }
      if (dtype != DType::f16) {
        must(builder.add(spec.name, dtype, testing::encode(values, dtype)));
        continue;
      }
      // Eighths below one, as halves: exponent by the leading bit, mantissa exact.
      static constexpr std::array<std::uint16_t, 8> halves = {0,      0x3000, 0x3400, 0x3600,
                                                              0x3800, 0x3900, 0x3a00, 0x3b00};
      std::vector<std::byte> bytes;
      for (const double value : values) {
        const std::uint16_t half = halves[static_cast<std::size_t>(value * 8.0)];
        bytes.push_back(static_cast<std::byte>(half & 0xffU));
        bytes.push_back(static_cast<std::byte>(half >> 8U));
      }
      must(builder.add(spec.name, dtype, bytes));
    }
    const auto session = testing::make_session<float>(must(builder.finish()));
    logits.push_back(testing::copy_of(must(session->prefill(tokens)).logits));
  }
  for (const auto& other : logits) {
    EXPECT_TRUE(testing::same_bits(std::span<const float>(other), logits[0]));
  }
}

}  // namespace
}  // namespace kvlens
