#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kvlens/random.h"
#include "ops/attend.h"
#include "ops/attend_q8_0.h"
#include "ops/half.h"
#include "ops/row_ops.h"

namespace kvlens::ops {
namespace {

struct Shape {
  std::size_t group;
  std::size_t head_dim;
  std::size_t first_position;
  std::size_t n_rows;
  std::size_t window;  // 0: none
};

template <class T>
struct Case {
  explicit Case(const Shape& s) : shape(s), end(s.first_position + s.n_rows) {
    SplitMix64 rng(13);
    const auto fill = [&](std::vector<T>& to, std::size_t size) {
      to.resize(size);
      for (T& value : to) value = static_cast<T>(2 * rng.unit() - 1);
    };
    fill(keys, end * s.head_dim);
    fill(values, end * s.head_dim);
    row_stride = s.group * s.head_dim + 5;  // as if other groups stood beside this one
    fill(q, s.n_rows * row_stride);
  }
  [[nodiscard]] KeyValueRows rows() const {
    return {dtype_of<T>, std::as_bytes(std::span(keys)).data(),
            std::as_bytes(std::span(values)).data(), shape.head_dim};
  }
  [[nodiscard]] HeadRows<const T> queries(std::size_t r) const {
    return {q.data() + r * row_stride, shape.head_dim, shape.group};
  }
  [[nodiscard]] QueryBlock<T> block(T* out) const {
    return {.q = q.data(),
            .out = out,
            .row_stride = row_stride,
            .n_heads = shape.group,
            .first_position = shape.first_position,
            .n_rows = shape.n_rows,
            .window = shape.window};
  }
  // Written out here: the kernels' own rule is under test.
  [[nodiscard]] std::size_t begin(std::size_t r) const {
    const std::size_t position = shape.first_position + r;
    return shape.window == 0 || position < shape.window ? 0 : position + 1 - shape.window;
  }

  Shape shape;
  std::size_t end;
  std::size_t row_stride;
  std::vector<T> keys, values, q;
};

const std::vector<Shape> shapes = {
    {1, 2, 0, 1, 0},     {1, 4, 0, 5, 0},   {2, 6, 3, 4, 0},    {3, 64, 0, 21, 0},
    {3, 64, 130, 9, 0},  {4, 16, 7, 10, 0}, {7, 10, 61, 12, 0}, {5, 20, 0, 70, 5},
    {1, 8, 200, 17, 64}, {3, 12, 63, 3, 1},
};

template <class T>
class AttendTest : public ::testing::Test {};
using ComputeTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AttendTest, ComputeTypes);

TYPED_TEST(AttendTest, WeightsAreTheSoftmaxOfScaledScores) {
  using T = TypeParam;
  const double near = std::is_same_v<T, float> ? 2e-6 : 1e-14;
  for (const Shape& shape : shapes) {
    const Case<T> c(shape);
    const std::size_t r = shape.n_rows - 1;
    const std::size_t stride = c.end + 3;
    std::vector<T> weights(shape.group * stride, T{7});
    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(shape.head_dim)));
    attention_weights<T>(c.rows(), c.queries(r), {c.begin(r), c.end}, scale,
                         {weights.data(), stride, shape.group});
    for (std::size_t g = 0; g < shape.group; ++g) {
      std::vector<double> expected(c.end, 0.0);
      double total = 0;
      for (std::size_t p = c.begin(r); p < c.end; ++p) {
        double score = 0;
        for (std::size_t d = 0; d < shape.head_dim; ++d) {
          score += static_cast<double>(c.q[r * c.row_stride + g * shape.head_dim + d]) *
                   static_cast<double>(c.keys[p * shape.head_dim + d]);
        }
        total += expected[p] = std::exp(score * static_cast<double>(scale));
      }
      for (std::size_t p = 0; p < c.end; ++p) {
        EXPECT_NEAR(static_cast<double>(weights[g * stride + p]), expected[p] / total, near);
      }
      for (std::size_t p = c.end; p < stride; ++p) EXPECT_EQ(weights[g * stride + p], T{7});
    }
  }
}

TYPED_TEST(AttendTest, MixAddsWeightedValuesInAscendingOrder) {
  using T = TypeParam;
  for (const Shape& shape : shapes) {
    const Case<T> c(shape);
    std::vector<T> weights(shape.group * c.end);
    SplitMix64 rng(17);
    for (T& weight : weights) weight = static_cast<T>(rng.unit());
    std::vector<T> out(shape.group * c.row_stride, T{7});
    attention_mix<T>(c.rows(), {weights.data(), c.end, shape.group}, {0, c.end},
                     {out.data(), c.row_stride, shape.group});
    for (std::size_t g = 0; g < shape.group; ++g) {
      for (std::size_t d = 0; d < shape.head_dim; ++d) {
        T expected = 0;
        for (std::size_t p = 0; p < c.end; ++p) {
          expected += weights[g * c.end + p] * c.values[p * shape.head_dim + d];
        }
        EXPECT_EQ(out[g * c.row_stride + d], expected);
      }
    }
  }
}

TYPED_TEST(AttendTest, ABlockHasTheBitsOfItsRowsOneByOne) {
  using T = TypeParam;
  for (const Shape& shape : shapes) {
    const Case<T> c(shape);
    const T scale = static_cast<T>(0.3);
    std::vector<T> expected(shape.n_rows * c.row_stride, T{7});
    std::vector<T> weights(shape.group * c.end);
    for (std::size_t r = 0; r < shape.n_rows; ++r) {
      const std::size_t end = shape.first_position + r + 1;
      const HeadRows<T> shown{weights.data(), c.end, shape.group};
      attention_weights<T>(c.rows(), c.queries(r), {c.begin(r), end}, scale, shown);
      attention_mix<T>(c.rows(), {weights.data(), c.end, shape.group}, {c.begin(r), end},
                       {expected.data() + r * c.row_stride, shape.head_dim, shape.group});
    }
    std::vector<T> out(shape.n_rows * c.row_stride, T{7});
    std::vector<T> scratch(*attend_scratch<T>(shape.n_rows, shape.group, c.end));
    attend_block<T>(c.rows(), c.block(out.data()), scale, scratch);
    EXPECT_EQ(out, expected) << "group " << shape.group << ", head_dim " << shape.head_dim;
  }
}

// What all three kernels make of `rows`, behind each other.
std::vector<float> attended(const Case<float>& c, const KeyValueRows& rows) {
  const Shape& shape = c.shape;
  const std::size_t last = shape.n_rows - 1;
  std::vector<float> weights(shape.group * c.end);
  attention_weights<float>(rows, c.queries(last), {c.begin(last), c.end}, 0.3f,
                           {weights.data(), c.end, shape.group});
  std::vector<float> out((shape.n_rows + 1) * c.row_stride, 7);
  attention_mix<float>(rows, {weights.data(), c.end, shape.group}, {c.begin(last), c.end},
                       {out.data(), shape.head_dim, shape.group});
  std::vector<float> scratch(*attend_scratch<float>(shape.n_rows, shape.group, c.end));
  attend_block<float>(rows, c.block(out.data() + c.row_stride), 0.3f, scratch);
  out.insert(out.end(), weights.begin(), weights.end());
  return out;
}

TEST(AttendStoredTest, RowsInBFloat16GiveTheBitsOfTheSameValuesAsFloats) {
  for (const Shape& shape : shapes) {
    Case<float> c(shape);
    const auto round = [](std::vector<float>& values) {
      std::vector<BFloat16> stored;
      for (float& value : values) {
        stored.push_back(to_bfloat16(value));
        value = to_float(stored.back());
      }
      return stored;
    };
    const std::vector<BFloat16> keys = round(c.keys);
    const std::vector<BFloat16> values = round(c.values);
    const KeyValueRows stored{DType::bf16, std::as_bytes(std::span(keys)).data(),
                              std::as_bytes(std::span(values)).data(), shape.head_dim};
    EXPECT_EQ(attended(c, stored), attended(c, c.rows()))
        << "group " << shape.group << ", head_dim " << shape.head_dim;
  }
}

// What attend_q8_0.h says, one number at a time.
class Q8Reference {
 public:
  static constexpr std::size_t block = 32;

  Q8Reference(std::span<const float> values, std::size_t head_dim) : head_dim_(head_dim) {
    for (std::size_t i = 0; i < values.size(); i += block) {
      float max = 0;
      for (std::size_t j = 0; j < block; ++j) max = std::fmax(max, std::fabs(values[i + j]));
      std::uint16_t bits = 0;  // of the least half that will do; halves ascend like their bits
      while (to_float(Half{bits}) < max / 127) ++bits;
      const float scale = to_float(Half{bits});
      scales_.push_back(scale);
      stored_.push_back(static_cast<std::byte>(bits & 0xff));
      stored_.push_back(static_cast<std::byte>(bits >> 8));
      for (std::size_t j = 0; j < block; ++j) {
        const float inverse = scale == 0 ? 0 : 1 / scale;
        integers_.push_back(static_cast<std::int64_t>(std::nearbyint(values[i + j] * inverse)));
        stored_.push_back(static_cast<std::byte>(integers_.back()));
      }
    }
  }

  [[nodiscard]] const std::vector<std::byte>& stored() const { return stored_; }
  [[nodiscard]] std::int64_t integer(std::size_t row, std::size_t d) const {
    return integers_[row * head_dim_ + d];
  }
  [[nodiscard]] float scale(std::size_t row, std::size_t d) const {
    return scales_[(row * head_dim_ + d) / block];
  }

  struct Words {
    std::vector<std::int64_t> integers;
    float scale = 0;
  };
  static Words words(std::span<const float> values) {
    float max = 0;
    for (const float value : values) max = std::fmax(max, std::fabs(value));
    Words words;
    const float inverse = max < 0x1p-112f ? 0 : 32767 / max;
    words.scale = max < 0x1p-112f ? 0 : max / 32767;
    for (const float value : values) {
      words.integers.push_back(static_cast<std::int64_t>(std::nearbyint(value * inverse)));
    }
    return words;
  }

  [[nodiscard]] float score(std::span<const float> q, std::size_t row, float scale) const {
    const Words words = Q8Reference::words(q);
    float total = 0;
    for (std::size_t d = 0; d < head_dim_; d += block) {
      std::int64_t dot = 0;
      for (std::size_t i = d; i < d + block; ++i) dot += integer(row, i) * words.integers[i];
      total += static_cast<float>(dot) * this->scale(row, d);
    }
    return scale * words.scale * total;
  }

  [[nodiscard]] std::vector<float> mix(std::span<const float> weights, std::size_t begin,
                                       std::size_t end) const {
    std::vector<float> out(head_dim_, 0.0f);
    for (std::size_t first = begin; first < end; first = (first / 64 + 1) * 64) {
      const std::size_t last = std::min(end, (first / 64 + 1) * 64);
      for (std::size_t d = 0; d < head_dim_; ++d) {
        std::vector<float> products;
        for (std::size_t p = first; p < last; ++p) products.push_back(weights[p] * scale(p, d));
        const Words words = Q8Reference::words(products);
        std::int64_t dot = 0;
        for (std::size_t p = first; p < last; ++p) dot += words.integers[p - first] * integer(p, d);
        out[d] += static_cast<float>(dot) * words.scale;
      }
    }
    return out;
  }

 private:
  std::size_t head_dim_;
  std::vector<std::byte> stored_;
  std::vector<std::int64_t> integers_;
  std::vector<float> scales_;
};

const std::vector<Shape> q8_shapes = {
    {1, 32, 0, 1, 0},    {3, 64, 0, 21, 0},    {3, 64, 130, 9, 0},    {4, 32, 7, 10, 0},
    {7, 96, 61, 12, 0},  {5, 32, 0, 70, 5},    {1, 512, 200, 17, 64}, {3, 64, 63, 3, 1},
    {2, 128, 250, 3, 0}, {3, 64, 900, 2, 500},
};

// `damage` makes rows extreme: as given, all zero, tiny (below the halves, and below the smallest
// float that has an inverse), or as large as a block holds.
void make_extreme(std::vector<float>& values, std::size_t head_dim) {
  const float factors[] = {1, 0, 0x1p-26f, 0x1p-120f, 8319008.0f, 1e-3f};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i / head_dim % 6];
}

TEST(AttendQ8Test, RowsInQ8_0GiveTheBitsOfTheIntegersThatTheyStandFor) {
  for (const bool extreme : {false, true}) {
    for (const Shape& shape : q8_shapes) {
      SCOPED_TRACE("group " + std::to_string(shape.group) + ", head_dim " +
                   std::to_string(shape.head_dim) + (extreme ? ", extreme" : ""));
      Case<float> c(shape);
      if (extreme) {
        make_extreme(c.keys, shape.head_dim);
        make_extreme(c.values, shape.head_dim);
      }
      const Q8Reference keys(c.keys, shape.head_dim);
      const Q8Reference values(c.values, shape.head_dim);
      for (const auto& [from, to] : {std::pair{&c.keys, &keys}, std::pair{&c.values, &values}}) {
        std::vector<std::byte> stored(to->stored().size());
        store_q8_0(*from, stored.data());
        ASSERT_EQ(stored, to->stored());
      }
      std::vector<float> expected((shape.n_rows + 1) * c.row_stride, 7);
      std::vector<float> weights(shape.group * c.end);
      const auto expect = [&](std::size_t r, float* out) {
        const std::size_t end = shape.first_position + r + 1;
        for (std::size_t g = 0; g < shape.group; ++g) {
          const std::span<const float> q(c.q.data() + r * c.row_stride + g * shape.head_dim,
                                         shape.head_dim);
          const std::span<float> row(weights.data() + g * c.end, end);
          std::ranges::fill(row, 0.0f);
          for (std::size_t p = c.begin(r); p < end; ++p) row[p] = keys.score(q, p, 0.3f);
          softmax(row.subspan(c.begin(r)));
          std::ranges::copy(values.mix(row, c.begin(r), end), out + g * shape.head_dim);
        }
      };
      for (std::size_t r = 0; r < shape.n_rows; ++r) {
        expect(r, expected.data() + (r + 1) * c.row_stride);
      }
      expect(shape.n_rows - 1, expected.data());
      expected.insert(expected.end(), weights.begin(), weights.end());
      const KeyValueRows stored{DType::q8_0, keys.stored().data(), values.stored().data(),
                                shape.head_dim};
      EXPECT_EQ(attended(c, stored), expected);
    }
  }
}

TEST(AttendQ8Test, NoNumberHidesNanOrInfinity) {
  const Case<float> c({3, 64, 70, 1, 0});
  const Q8Reference rows(c.keys, 64);
  const KeyValueRows stored{DType::q8_0, rows.stored().data(), rows.stored().data(), 64};
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Case<float> with_bad = c;
    with_bad.q[64 + 5] = bad;
    std::vector<float> weights(3 * c.end);
    attention_weights<float>(stored, with_bad.queries(0), {0, c.end}, 0.3f,
                             {weights.data(), c.end, 3});
    EXPECT_TRUE(std::isfinite(weights[0]));
    EXPECT_TRUE(std::isnan(weights[c.end]));
    std::vector<float> out(3 * 64);
    std::ranges::fill(weights, 0.5f);
    weights[2 * c.end + 66] = bad;
    attention_mix<float>(stored, {weights.data(), c.end, 3}, {0, c.end}, {out.data(), 64, 3});
    EXPECT_TRUE(std::isfinite(out[64]));
    for (std::size_t d = 128; d < 192; ++d) EXPECT_TRUE(std::isnan(out[d]));
  }
}

TEST(HalfTest, TheLeastHalfNotBelowIsTheNextOneUpUnlessItIsExact) {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float value = to_float(Half{bits});
    ASSERT_EQ(to_half_not_below(value).bits, bits);
    ASSERT_EQ(to_half_not_below(std::nextafter(value, 1e30f)).bits, bits + 1);
    ASSERT_EQ(to_half_not_below(
                  std::nextafter(to_float(Half{static_cast<std::uint16_t>(bits + 1)}), 0.0f))
                  .bits,
              bits + 1);
  }
  EXPECT_EQ(to_half_not_below(65504).bits, 0x7bff);
}

TEST(BFloat16Test, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(to_float(to_bfloat16(1.0f)), 1.0f);
  EXPECT_EQ(to_float(to_bfloat16(-0.0f)), 0.0f);
  EXPECT_TRUE(std::signbit(to_float(to_bfloat16(-0.0f))));
  // Neighbours of 1 are 2^-7 apart: halfway goes to the even one, beside it to the nearer.
  EXPECT_EQ(to_float(to_bfloat16(1 + 0x1p-8f)), 1.0f);
  EXPECT_EQ(to_float(to_bfloat16(1 + 0x1p-8f + 0x1p-23f)), 1 + 0x1p-7f);
  EXPECT_EQ(to_float(to_bfloat16(1 + 0x3p-8f)), 1 + 0x2p-7f);
  EXPECT_EQ(to_float(to_bfloat16(-1 - 0x3p-8f + 0x1p-23f)), -1 - 0x1p-7f);
  EXPECT_EQ(to_float(to_bfloat16(0x1.fep127f)), 0x1.fep127f);
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16(0x1.ffp127f))));
  EXPECT_EQ(to_float(to_bfloat16(0x1p-133f)), 0x1p-133f);
  EXPECT_EQ(to_float(to_bfloat16(0x1p-134f)), 0.0f);
}

}  // namespace
}  // namespace kvlens::ops
