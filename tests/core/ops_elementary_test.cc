#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kvlens/random.h"
#include "ops/elementary.h"

namespace kvlens::ops {
namespace {

// Distance of `value` from the exact result, in units of the last place of a T near it.
template <class T>
double ulps(T value, long double exact) {
  const T nearest = static_cast<T>(exact);
  const T unit =
      std::nextafter(std::abs(nearest), std::numeric_limits<T>::infinity()) - std::abs(nearest);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) / unit);
}

double uniform(SplitMix64& rng, double low, double high) { return low + (high - low) * rng.unit(); }

TEST(ElementaryTest, FloatExponentialIsWithinTwoUlp) {
  SplitMix64 rng(1);
  double worst = 0;
  for (int i = 0; i < 400'000; ++i) {
    const auto x = static_cast<float>(uniform(rng, -104.5, 88.7));
    worst = std::max(worst, ulps(exponential(x), std::exp(static_cast<long double>(x))));
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, 2.0);
}

TEST(ElementaryTest, FloatExponentialHasTheLimitsOfTheFunction) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exponential(0.0f), 1.0f);
  EXPECT_EQ(exponential(-0.0f), 1.0f);
  EXPECT_EQ(exponential(-inf), 0.0f);
  EXPECT_EQ(exponential(-200.0f), 0.0f);
  EXPECT_EQ(exponential(inf), inf);
  EXPECT_EQ(exponential(89.0f), inf);
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

TEST(ElementaryTest, FourExponentialsHaveTheBitsOfOne) {
  SplitMix64 rng(2);
  for (int i = 0; i < 10'000; ++i) {
    float x[4];
    for (float& each : x) each = static_cast<float>(uniform(rng, -110, 95));
    const f32x4 four = exponential(load(x), exponential_constants);
    for (std::size_t lane = 0; lane < 4; ++lane) {
      const float one = exponential(x[lane]);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(four[lane])),
                std::bit_cast<std::uint32_t>(one));
    }
  }
}

TEST(ElementaryTest, DoubleExponentialIsWithinOneUlp) {
  SplitMix64 rng(3);
  double worst = 0;
  for (int i = 0; i < 400'000; ++i) {
    const double x = uniform(rng, i % 2 == 0 ? -744.0 : -3.0, i % 2 == 0 ? 709.7 : 3.0);
    worst = std::max(worst, ulps(exponential(x), std::exp(static_cast<long double>(x))));
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, 1.0);
  EXPECT_EQ(exponential(-1000.0), 0.0);
  EXPECT_EQ(exponential(1000.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(exponential(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<double>::quiet_NaN())));
}

TEST(ElementaryTest, LogarithmIsWithinOneUlp) {
  SplitMix64 rng(4);
  double worst = 0;
  for (int i = 0; i < 400'000; ++i) {
    const double x = i % 2 == 0 ? uniform(rng, 0.5, 2.0) : std::exp(uniform(rng, -740.0, 700.0));
    worst = std::max(worst, ulps(logarithm(x), std::log(static_cast<long double>(x))));
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LE(worst, 1.0);
  EXPECT_EQ(logarithm(1.0), 0.0);
}

TEST(ElementaryTest, SineAndCosineAreExactToTheLastPlaceUpToTwoToTheThirty) {
  SplitMix64 rng(5);
  double worst = 0;
  for (int i = 0; i < 400'000; ++i) {
    const double limit = std::exp2(static_cast<double>(i % 31));
    const double x = uniform(rng, -limit, limit);
    const SineCosine both = sine_cosine(x);
    const long double exact = x;
    worst = std::max(worst, static_cast<double>(std::abs(both.sine - std::sin(exact))));
    worst = std::max(worst, static_cast<double>(std::abs(both.cosine - std::cos(exact))));
  }
  RecordProperty("worst_absolute", std::to_string(worst));
  EXPECT_LE(worst, std::exp2(-53.0));
  EXPECT_EQ(sine_cosine(0.0).sine, 0.0);
  EXPECT_EQ(sine_cosine(0.0).cosine, 1.0);
}

TEST(ElementaryTest, RootPowersAreCorrectlyRounded) {
  for (const double base : {10000.0, 100000.0, 500000.0, 1000000.0, 2.5}) {
    for (const std::size_t n : {1u, 2u, 3u, 12u, 24u, 32u, 64u, 128u}) {
      std::vector<double> powers(n);
      root_powers(base, n, powers.data());
      for (std::size_t i = 0; i < n; ++i) {
        // What defines it: power^n * base^i = 1. Not every platform has a better pow to ask.
        long double product = 1;
        for (std::size_t k = 0; k < n; ++k) product *= powers[i];
        for (std::size_t k = 0; k < i; ++k) product *= base;
        const long double relative = std::abs(product - 1) / static_cast<long double>(n);
        const double ulp = std::nextafter(powers[i], 2 * powers[i]) - powers[i];
        EXPECT_LE(static_cast<double>(relative * powers[i] / ulp), 0.51)
            << base << "^(-" << i << "/" << n << ")";
      }
    }
  }
}

}  // namespace
}  // namespace kvlens::ops
