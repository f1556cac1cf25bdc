#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kvlens/random.h"
#include "ops/row_ops.h"

namespace kvlens::ops {
namespace {

template <class T>
std::vector<T> random_row(SplitMix64& rng, std::size_t size, double limit) {
  std::vector<T> row(size);
  for (T& value : row) value = static_cast<T>((2 * rng.unit() - 1) * limit);
  return row;
}

template <class T>
class RowOpsTest : public ::testing::Test {
 protected:
  static constexpr double relative = std::is_same_v<T, float> ? 2e-6 : 4e-15;
};
using ComputeTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RowOpsTest, ComputeTypes);

TYPED_TEST(RowOpsTest, RmsNormDividesByTheRootMeanSquare) {
  using T = TypeParam;
  SplitMix64 rng(7);
  for (std::size_t size = 1; size < 70; ++size) {
    const auto x = random_row<T>(rng, size, 3);
    const auto gain = random_row<T>(rng, size, 2);
    std::vector<T> out(size);
    rms_norm<T>(x, gain, static_cast<T>(1e-5), out);
    double squares = 0;
    for (const T value : x) squares += static_cast<double>(value) * static_cast<double>(value);
    const double root = std::sqrt(squares / static_cast<double>(size) + 1e-5);
    for (std::size_t i = 0; i < size; ++i) {
      const double expected = static_cast<double>(x[i]) / root * static_cast<double>(gain[i]);
      EXPECT_NEAR(static_cast<double>(out[i]), expected, this->relative * (1 + std::abs(expected)));
    }
    auto in_place = x;
    rms_norm<T>(in_place, gain, static_cast<T>(1e-5), in_place);
    EXPECT_EQ(in_place, out);
  }
}

TYPED_TEST(RowOpsTest, SoftmaxSumsToOneAndKeepsRatios) {
  using T = TypeParam;
  SplitMix64 rng(8);
  for (std::size_t size = 1; size < 70; ++size) {
    const auto x = random_row<T>(rng, size, 20);
    auto out = x;
    softmax<T>(out);
    double total = 0;
    for (const T value : x) total += std::exp(static_cast<double>(value));
    for (std::size_t i = 0; i < size; ++i) {
      const double expected = std::exp(static_cast<double>(x[i])) / total;
      // The difference of two scores is rounded at the size of a score.
      EXPECT_NEAR(static_cast<double>(out[i]), expected, 10 * this->relative * expected);
    }
  }
}

TYPED_TEST(RowOpsTest, SoftmaxOfOneIsOneAndOfHugeScoresIsFinite) {
  using T = TypeParam;
  std::vector<T> one = {static_cast<T>(-1e30)};
  softmax<T>(one);
  EXPECT_EQ(one[0], T{1});
  std::vector<T> huge = {static_cast<T>(-1e30), static_cast<T>(1e30), 0, 0, static_cast<T>(1e30)};
  softmax<T>(huge);
  EXPECT_EQ(huge, (std::vector<T>{0, static_cast<T>(0.5), 0, 0, static_cast<T>(0.5)}));
}

TYPED_TEST(RowOpsTest, SoftmaxPassesANaNOnWhereverItStands) {
  using T = TypeParam;
  for (std::size_t at = 0; at < 11; ++at) {
    std::vector<T> x(11, T{1});
    x[at] = std::numeric_limits<T>::quiet_NaN();
    softmax<T>(x);
    for (const T value : x) EXPECT_TRUE(std::isnan(value));
  }
}

TYPED_TEST(RowOpsTest, ExponentialSumErrsNoMoreThanItsExponentials) {
  using T = TypeParam;
  SplitMix64 rng(10);
  for (const std::size_t size : {1U, 3U, 4U, 7U, 1000U, 49152U}) {
    for (const double limit : {1.0, 30.0, 3000.0}) {
      const auto x = random_row<T>(rng, size, limit);
      const T largest = *std::ranges::max_element(x);
      EXPECT_EQ(maximum<T>(x), largest);
      long double total = 0;
      for (const T value : x) {
        total += std::exp(static_cast<long double>(value) - static_cast<long double>(largest));
      }
      const double bound = std::is_same_v<T, float> ? 2.5e-7 : 1e-14;  // two ulp and the difference
      EXPECT_NEAR(exponential_sum<T>(x) / static_cast<double>(total), 1.0, bound) << size;
    }
  }
}

TYPED_TEST(RowOpsTest, SwigluIsSiluTimesUp) {
  using T = TypeParam;
  SplitMix64 rng(9);
  for (const std::size_t size : {1u, 3u, 4u, 17u, 64u}) {
    const auto gate = random_row<T>(rng, size, 12);
    const auto up = random_row<T>(rng, size, 2);
    auto out = gate;
    swiglu<T>(out, up, out);
    for (std::size_t i = 0; i < size; ++i) {
      const auto g = static_cast<double>(gate[i]);
      const double expected = g / (1 + std::exp(-g)) * static_cast<double>(up[i]);
      EXPECT_NEAR(static_cast<double>(out[i]), expected, this->relative * std::abs(expected));
    }
  }
  std::vector<T> far = {static_cast<T>(-1e4), static_cast<T>(1e4)};
  swiglu<T>(far, std::vector<T>{1, 1}, far);
  EXPECT_EQ(far, (std::vector<T>{0, static_cast<T>(1e4)}));
}

TYPED_TEST(RowOpsTest, AddAddsElementByElement) {
  using T = TypeParam;
  std::vector<T> x = {1, 2, 3, 4, 5};
  add<T>(x, std::vector<T>{10, 20, 30, 40, 50});
  EXPECT_EQ(x, (std::vector<T>{11, 22, 33, 44, 55}));
}

TYPED_TEST(RowOpsTest, FirstNonFiniteNamesTheFirst) {
  using T = TypeParam;
  for (std::size_t size = 1; size < 14; ++size) {
    std::vector<T> x(size, std::numeric_limits<T>::max());
    EXPECT_EQ(first_non_finite<T>(x), std::nullopt);
    for (std::size_t at = size; at-- > 0;) {
      x[at] =
          at % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : -std::numeric_limits<T>::infinity();
      EXPECT_EQ(first_non_finite<T>(x), at);
    }
  }
}

}  // namespace
}  // namespace kvlens::ops
