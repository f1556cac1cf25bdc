#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kvlens/random.h"
#include "ops/linear.h"
#include "ops/linear_kernels.h"
#include "ops/packing.h"

namespace kvlens::ops {
namespace {

// A matrix whose storage is random, or drawn from the ends of its range.
enum class Content { random, extreme };

struct Storage {
  Storage(DType type, std::size_t n_rows, std::size_t n_cols, Content content)
      : dtype(type), rows(n_rows), cols(n_cols) {
    SplitMix64 rng(23);
    const DTypeInfo info = dtype_info(dtype);
    bytes.resize(rows * (cols / info.block_values) * info.block_bytes);
    if (!is_quantised(dtype)) fill_floats(rng);
    for (std::size_t at = 0; is_quantised(dtype) && at < bytes.size(); at += info.block_bytes) {
      fill_block(rng, std::span(bytes).subspan(at, info.block_bytes), content);
    }
  }

  void fill_floats(SplitMix64& rng) {
    for (std::size_t i = 0; i < rows * cols; ++i) {
      const double value = 2 * rng.unit() - 1;
      const auto single = static_cast<float>(value);
      const auto top = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(single) >> 16);
      // A half of either sign below 2.
      const auto half = static_cast<std::uint16_t>(rng.next() & 0xbfffu);
      if (dtype == DType::f64) std::memcpy(bytes.data() + i * 8, &value, 8);
      if (dtype == DType::f32) std::memcpy(bytes.data() + i * 4, &single, 4);
      if (dtype == DType::bf16) std::memcpy(bytes.data() + i * 2, &top, 2);
      if (dtype == DType::f16) std::memcpy(bytes.data() + i * 2, &half, 2);
    }
  }

  void fill_block(SplitMix64& rng, std::span<std::byte> block, Content content) const {
    static constexpr std::byte ends[] = {std::byte{0x00}, std::byte{0xff}, std::byte{0x80},
                                         std::byte{0x7f}, std::byte{0x0f}, std::byte{0xf0}};
    const std::byte same = ends[rng.next() % 6];
    for (std::byte& byte : block) {
      byte = content == Content::random ? static_cast<std::byte>(rng.next() & 0xffu) : same;
    }
    // Halves: normal, or at the ends (zero, the smallest subnormal, the largest).
    static constexpr std::uint16_t half_ends[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff};
    for (const std::size_t offset : half_offsets()) {
      auto half = static_cast<std::uint16_t>(0x2000u | (rng.next() & 0x8fffu));
      if (content == Content::extreme) half = half_ends[rng.next() % 6];
      std::memcpy(block.data() + offset, &half, 2);
    }
  }

  [[nodiscard]] std::vector<std::size_t> half_offsets() const {
    switch (dtype) {
      case DType::q2_k:
        return {80, 82};
      case DType::q3_k:
        return {108};
      case DType::q6_k:
        return {208};
      case DType::q8_0:
      case DType::q4_0:
      case DType::q5_0:
        return {0};
      default:
        return {0, 2};
    }
  }

  [[nodiscard]] MatrixView plain() const { return {dtype, Layout::rows, rows, cols, bytes.data()}; }
  // The packed form, kept here.
  [[nodiscard]] MatrixView packed() {
    packed_bytes = bytes;
    std::vector<std::byte> scratch(4 * bytes.size() / rows);
    pack(dtype, rows, cols, packed_bytes, scratch);
    return {dtype, Layout::packed, rows, cols, packed_bytes.data()};
  }

  DType dtype;
  std::size_t rows, cols;
  std::vector<std::byte> bytes;
  std::vector<std::byte> packed_bytes;
};

template <class T>
std::vector<T> random_input(std::size_t n_rows, std::size_t cols, Content content) {
  SplitMix64 rng(29);
  std::vector<T> x(n_rows * cols);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t block = i / 32;
    x[i] = static_cast<T>(2 * rng.unit() - 1);
    if (content == Content::random) continue;
    if (block % 5 == 0) x[i] = 0;
    if (block % 5 == 1) x[i] = static_cast<T>(-1);                   // every value -127
    if (block % 5 == 2) x[i] = static_cast<T>(i % 2 == 0 ? 3 : -3);  // both ends
    if (block % 5 == 3) x[i] *= static_cast<T>(1e-37);               // below the smallest scale
  }
  return x;
}

template <class T>
LinearInput<T> make_input(const std::vector<T>& x, std::size_t n_rows, std::size_t cols) {
  auto input = LinearInput<T>::create(n_rows, cols);
  EXPECT_TRUE(input);
  input->set(x.data(), n_rows, cols, true);
  return std::move(*input);
}

template <class T>
std::vector<T> product_of(const MatrixView& matrix, const LinearInput<T>& input) {
  std::vector<T> y(input.n_rows() * matrix.rows, std::numeric_limits<T>::quiet_NaN());
  EXPECT_EQ(linear(matrix, input, 0, matrix.rows, y.data()),
            input.n_rows() * matrix.rows * matrix.cols);
  return y;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

class LinearTest : public ::testing::TestWithParam<DType> {
 protected:
  [[nodiscard]] static std::size_t block_values() { return dtype_info(GetParam()).block_values; }
  // Column counts that leave every kind of remainder.
  [[nodiscard]] static std::vector<std::size_t> column_counts() {
    if (!is_quantised(GetParam())) return {1, 3, 4, 30, 64};
    return {block_values(), 3 * block_values()};
  }
};

TEST_P(LinearTest, DoubleIsTheDequantisedProductInTheLaneOrder) {
  for (const std::size_t cols : column_counts()) {
    const std::size_t rows = 9, n_inputs = 18;
    Storage storage(GetParam(), rows, cols, Content::random);
    const auto x = random_input<double>(n_inputs, cols, Content::random);
    const auto input = make_input(x, n_inputs, cols);
    std::vector<double> expected(n_inputs * rows);
    for (std::size_t o = 0; o < rows; ++o) {
      std::vector<double> w(cols);
      dequantise_row<double>(storage.plain(), o, w);
      for (std::size_t r = 0; r < n_inputs; ++r) {
        double lanes[4] = {};
        for (std::size_t c = 0; c < cols; ++c) lanes[c % 4] += x[r * cols + c] * w[c];
        expected[r * rows + o] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
      }
    }
    EXPECT_EQ(product_of(storage.plain(), input), expected);
    if (can_pack(GetParam())) {
      EXPECT_EQ(product_of(storage.packed(), input), expected);
    }
  }
}

TEST_P(LinearTest, FloatIsNearTheDequantisedProduct) {
  for (const std::size_t cols : column_counts()) {
    const std::size_t rows = 5, n_inputs = 3;
    Storage storage(GetParam(), rows, cols, Content::random);
    const auto x = random_input<float>(n_inputs, cols, Content::random);
    const auto y = product_of(storage.plain(), make_input(x, n_inputs, cols));
    for (std::size_t o = 0; o < rows; ++o) {
      std::vector<double> w(cols);
      dequantise_row<double>(storage.plain(), o, w);
      for (std::size_t r = 0; r < n_inputs; ++r) {
        double exact = 0, magnitude = 0;
        for (std::size_t c = 0; c < cols; ++c) {
          exact += static_cast<double>(x[r * cols + c]) * w[c];
          magnitude += std::abs(w[c]);
        }
        // An input of at most 1 is rounded by at most half of 1/127.
        const double bound = is_quantised(GetParam()) ? 0.5 / 127 * 1.01 : 1e-6;
        EXPECT_NEAR(static_cast<double>(y[r * rows + o]), exact, bound * magnitude + 1e-6);
      }
    }
  }
}

TEST_P(LinearTest, AnyLayoutSplitAndBatchGivesTheSameBits) {
  for (const Content content : {Content::random, Content::extreme}) {
    for (const std::size_t cols : column_counts()) {
      const std::size_t rows = 27, n_inputs = 11;
      Storage storage(GetParam(), rows, cols, content);
      const auto x = random_input<float>(n_inputs, cols, content);
      const auto input = make_input(x, n_inputs, cols);
      const auto whole = product_of(storage.plain(), input);
      const MatrixView matrix = can_pack(GetParam()) ? storage.packed() : storage.plain();
      EXPECT_TRUE(same_bits(product_of(matrix, input), whole));
      std::vector<float> split(whole.size());
      for (const auto& [begin, end] :
           {std::pair{0u, 5u}, {5u, 6u}, {6u, 16u}, {16u, 25u}, {25u, 27u}}) {
        linear(matrix, input, begin, end, split.data());
      }
      EXPECT_TRUE(same_bits(split, whole));
      for (std::size_t batch = 1; batch < 7; ++batch) {
        std::vector<float> batched;
        for (std::size_t r = 0; r < n_inputs; r += batch) {
          const std::size_t n = std::min(batch, n_inputs - r);
          const std::vector<float> part(x.begin() + static_cast<std::ptrdiff_t>(r * cols),
                                        x.begin() + static_cast<std::ptrdiff_t>((r + n) * cols));
          const auto y = product_of(matrix, make_input(part, n, cols));
          batched.insert(batched.end(), y.begin(), y.end());
        }
        EXPECT_TRUE(same_bits(batched, whole)) << "batch " << batch;
      }
    }
  }
}

TEST_P(LinearTest, BothKernelsHaveTheBitsOfTheReference) {
  if (!is_quantised(GetParam())) return;
  for (const Content content : {Content::random, Content::extreme}) {
    for (const std::size_t blocks : {1u, 9u, 17u}) {
      const std::size_t rows = 44, cols = blocks * block_values();
      Storage storage(GetParam(), rows, cols, content);
      for (const std::size_t n_inputs : {1u, 2u, 4u, 9u}) {
        const auto x = random_input<float>(n_inputs, cols, content);
        const auto input = make_input(x, n_inputs, cols);
        const auto run = [&](auto kernel, const MatrixView& matrix) {
          std::vector<float> y(n_inputs * rows);
          kernel(matrix, std::size_t{0}, rows,
                 Int8Product{input.blocks(), cols / 32, n_inputs, y.data(), rows});
          return y;
        };
        const auto expected = run(linear_int8_reference, storage.plain());
        EXPECT_TRUE(same_bits(run(linear_int8_reference, storage.packed()), expected));
        EXPECT_TRUE(same_bits(run(linear_int8_pair, storage.packed()), expected));
        EXPECT_TRUE(same_bits(run(linear_int8_quad, storage.packed()), expected));
      }
    }
  }
}

TEST_P(LinearTest, ANonFiniteInputReachesEveryOutputOfItsRowAlone) {
  const std::size_t cols = 2 * std::max<std::size_t>(block_values(), 32), rows = 6;
  Storage storage(GetParam(), rows, cols, Content::random);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    auto x = random_input<float>(3, cols, Content::random);
    x[cols + 37] = bad;
    const auto y = product_of(storage.plain(), make_input(x, 3, cols));
    for (std::size_t o = 0; o < rows; ++o) {
      EXPECT_TRUE(std::isfinite(y[o]));
      EXPECT_FALSE(std::isfinite(y[rows + o]));
      EXPECT_TRUE(std::isfinite(y[2 * rows + o]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, LinearTest,
                         ::testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16,
                                           DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                                           DType::q5_1, DType::q2_k, DType::q3_k, DType::q4_k,
                                           DType::q5_k, DType::q6_k),
                         [](const auto& instance) {
                           return std::string(dtype_info(instance.param).name);
                         });

TEST(Int8BlockTest, RoundsToNearestWithTiesToEven) {
  float x[32] = {127.0f, -127.0f, 0.5f, 1.5f, -0.5f, -1.5f, 2.5f, 0.49f};
  Int8Block block;
  quantise(x, block);
  EXPECT_EQ(block.scale, 1.0f);
  const int expected[] = {127, -127, 0, 2, 0, -2, 2, 0};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(block.value[i], expected[i]);
  EXPECT_EQ(block.count, 2);
  EXPECT_EQ(block.negative_count, 129);
  EXPECT_EQ(block.half_count[1], 0);
}

TEST(Int8BlockTest, EveryFormSaysTheSame) {
  const auto x = random_input<float>(50, 32, Content::extreme);
  for (std::size_t b = 0; b < 50; ++b) {
    Int8Block block;
    quantise(x.data() + 32 * b, block);
    int counts[2] = {0, 0};
    for (std::size_t i = 0; i < 32; ++i) {
      const int value = block.value[i];
      EXPECT_EQ(block.wide[i], value);
      EXPECT_EQ(block.magnitude[i], std::abs(value));
      EXPECT_LE(block.magnitude[i], 127);
      EXPECT_EQ(block.sign[i], value < 0 ? 255 : 0);
      counts[i / 16] += value;
    }
    EXPECT_EQ(block.half_count[0], counts[0]);
    EXPECT_EQ(block.half_count[1], counts[1]);
    EXPECT_EQ(block.sum, block.scale * static_cast<float>(block.count));
  }
}

TEST(LinearInputTest, TooLargeIsAnErrorValue) {
  const auto input = LinearInput<float>::create(SIZE_MAX / 2, 4096);
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().code, ErrorCode::size_overflow);
}

}  // namespace
}  // namespace kvlens::ops
