#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kvlens/random.h"
#include "ops/rope.h"

namespace kvlens::ops {
namespace {

TEST(RopeTest, TurnsEachPairByItsAngle) {
  for (const RopePairing pairing : {RopePairing::interleaved, RopePairing::half_split}) {
    const std::size_t head_dim = 8;
    const RopeSpec spec{pairing, 10000.0, {1.0, 2.0, 4.0, 8.0}};
    const auto table = RopeTable<double>::create(spec, head_dim, 600);
    ASSERT_TRUE(table);
    SplitMix64 rng(11);
    std::vector<double> heads(2 * head_dim);
    for (double& value : heads) value = rng.unit() - 0.5;
    const auto before = heads;
    const std::size_t position = 577;
    table->apply(position, heads);
    for (std::size_t head = 0; head < 2; ++head) {
      for (std::size_t i = 0; i < head_dim / 2; ++i) {
        const bool interleaved = pairing == RopePairing::interleaved;
        const std::size_t a = head * head_dim + (interleaved ? 2 * i : i);
        const std::size_t b = a + (interleaved ? 1 : head_dim / 2);
        const double angle = static_cast<double>(position) *
                             std::pow(10000.0, -2.0 * static_cast<double>(i) / head_dim) /
                             spec.freq_factors[i];
        EXPECT_NEAR(heads[a], before[a] * std::cos(angle) - before[b] * std::sin(angle), 1e-13);
        EXPECT_NEAR(heads[b], before[a] * std::sin(angle) + before[b] * std::cos(angle), 1e-13);
      }
    }
  }
}

TEST(RopeTest, PositionZeroChangesNothing) {
  const auto table = RopeTable<float>::create({}, 6, 1);
  ASSERT_TRUE(table);
  std::vector<float> heads = {1, 2, 3, 4, 5, 6};
  table->apply(0, heads);
  EXPECT_EQ(heads, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(RopeTest, TheFloatTableIsTheDoubleTableRounded) {
  const RopeSpec spec{RopePairing::half_split, 500000.0, {}};
  const auto doubles = RopeTable<double>::create(spec, 64, 64);
  const auto floats = RopeTable<float>::create(spec, 64, 64);
  ASSERT_TRUE(doubles && floats);
  for (std::size_t i = 0; i < 32; ++i) {
    std::vector<double> exact(64, 0.0);
    std::vector<float> rounded(64, 0.0f);
    exact[i] = 1;
    rounded[i] = 1;
    doubles->apply(63, exact);
    floats->apply(63, rounded);
    EXPECT_EQ(rounded[i], static_cast<float>(exact[i]));
    EXPECT_EQ(rounded[i + 32], static_cast<float>(exact[i + 32]));
  }
}

TEST(RopeTest, TableTooLargeIsAnErrorValue) {
  const auto table = RopeTable<float>::create({}, 1024, SIZE_MAX / 64);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::size_overflow);
}

}  // namespace
}  // namespace kvlens::ops
