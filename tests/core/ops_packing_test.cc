#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "kvlens/random.h"
#include "ops/half.h"
#include "ops/packing.h"
#include "support/json.h"

namespace kvlens::ops {
namespace {

std::vector<DType> dtypes() {
  return {
#define KVLENS_TYPE(name, values, bytes) DType::name,
      KVLENS_DTYPES(KVLENS_TYPE)
#undef KVLENS_TYPE
  };
}

std::vector<std::byte> decode_base64(const std::string& text) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::byte> bytes;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = (bits << 6) | static_cast<std::uint32_t>(alphabet.find(c));
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes.push_back(static_cast<std::byte>((bits >> held) & 0xffu));
    }
  }
  return bytes;
}

std::vector<std::byte> random_bytes(SplitMix64& rng, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next() & 0xffu);
  return bytes;
}

TEST(PackingTest, EveryTypeHasTheValuesOfTheGoldenTable) {
  const auto table = testing::read_json(testing::fixtures_root() / "quant" / "quant_blocks.json");
  std::size_t checked = 0;
  for (const auto& [upper, entry] : testing::field(table, "types").items()) {
    std::string name = upper;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto dtype = dtype_from_name(name);
    if (!dtype) continue;  // a type that kvlens does not store
    ++checked;
    const auto bytes = decode_base64(testing::field(entry, "bytes_base64").get<std::string>());
    const auto values = testing::numbers(testing::field(entry, "values"));
    ASSERT_EQ(testing::field(entry, "block_size").get<std::size_t>(),
              dtype_info(*dtype).block_values);
    ASSERT_EQ(testing::field(entry, "type_size").get<std::size_t>(),
              dtype_info(*dtype).block_bytes);
    const MatrixView matrix{*dtype, Layout::rows, 1, values.size(), bytes.data()};
    std::vector<double> doubles(values.size());
    std::vector<float> floats(values.size());
    dequantise_row<double>(matrix, 0, doubles);
    dequantise_row<float>(matrix, 0, floats);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(doubles[i], values[i]) << name << " value " << i;
      ASSERT_EQ(static_cast<double>(floats[i]), values[i]) << name << " value " << i;
    }
  }
  EXPECT_EQ(checked, 12u);
}

TEST(PackingTest, EveryHalfConvertsAsItsSignExponentAndFractionSay) {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 31u);
    if (exponent == 31) continue;
    const int fraction = static_cast<int>(bits & 1023u);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const double expected = (bits & 0x8000u) != 0 ? -magnitude : magnitude;
    const Half half{static_cast<std::uint16_t>(bits)};
    ASSERT_EQ(static_cast<double>(to_float(half)), expected);
    const Half four[4] = {half, half, half, half};
    const f32x4 vector = load_halves(four);
    ASSERT_EQ(static_cast<double>(vector[3]), expected);
    ASSERT_EQ(std::signbit(static_cast<float>(vector[3])), std::signbit(expected));
  }
}

TEST(PackingTest, EveryBlockOfAPackedMatrixIsReadBackWithItsBytes) {
  SplitMix64 rng(19);
  for (const DType dtype : dtypes()) {
    EXPECT_EQ(can_pack(dtype), is_quantised(dtype));
    if (!can_pack(dtype)) continue;
    const DTypeInfo info = dtype_info(dtype);
    for (const std::size_t rows : {1u, 4u, 7u, 8u}) {
      const std::size_t cols = 3 * info.block_values;
      const auto original = random_bytes(rng, rows * 3 * info.block_bytes);
      auto bytes = original;
      std::vector<std::byte> scratch(4 * 3 * info.block_bytes);
      pack(dtype, rows, cols, bytes, scratch);
      EXPECT_EQ(rows < 4, bytes == original);
      const MatrixView packed{dtype, Layout::packed, rows, cols, bytes.data()};
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t block = 0; block < 3; ++block) {
          std::byte copy[max_block_bytes];
          copy_block(packed, row, block, copy);
          EXPECT_EQ(std::memcmp(copy, original.data() + (row * 3 + block) * info.block_bytes,
                                info.block_bytes),
                    0)
              << info.name << " row " << row << " block " << block;
        }
      }
    }
  }
}

TEST(PackingTest, AQ8GroupInterleavesScalesAndFourBytesOfEachRow) {
  std::vector<std::byte> bytes(4 * 34);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t i = 0; i < 34; ++i) {
      bytes[34 * row + i] = static_cast<std::byte>(row * 64 + i);  // scale bytes 0 1, quants 2..33
    }
  }
  std::vector<std::byte> scratch(bytes.size());
  pack(DType::q8_0, 4, 32, bytes, scratch);
  const std::vector<int> begin = {0,   1,   64,  65,  128, 129, 192, 193,            // scales
                                  2,   3,   4,   5,   66,  67,  68,  69,  130, 131,  // quants 0..3
                                  132, 133, 194, 195, 196, 197, 6,   7};             // quants 4..
  for (std::size_t i = 0; i < begin.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[i]), begin[i]);
}

TEST(PackingTest, NonFiniteStorageIsFoundAtTheFirstValueOfItsBlock) {
  for (const DType dtype : dtypes()) {
    const DTypeInfo info = dtype_info(dtype);
    std::vector<std::byte> bytes(5 * info.block_bytes);
    EXPECT_EQ(first_non_finite_stored(dtype, bytes), std::nullopt) << info.name;
    // All bits set is a NaN in every float; in a block it is one where the scales are.
    for (std::size_t i = 3 * info.block_bytes; i < 4 * info.block_bytes; ++i) {
      bytes[i] = std::byte{0xff};
    }
    EXPECT_EQ(first_non_finite_stored(dtype, bytes), 3 * info.block_values) << info.name;
  }
  // Far from the start, and in the last block of all.
  for (const DType dtype : dtypes()) {
    const DTypeInfo info = dtype_info(dtype);
    constexpr std::size_t n_blocks = 2500;
    std::vector<std::byte> bytes(n_blocks * info.block_bytes);
    for (const std::size_t bad : {std::size_t{2499}, std::size_t{1500}, std::size_t{1024}}) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(bad * info.block_bytes);
      std::fill_n(begin, info.block_bytes, std::byte{0xff});
      EXPECT_EQ(first_non_finite_stored(dtype, bytes), bad * info.block_values) << info.name;
    }
  }
  // A float is refused for its exponent alone: infinities and NaNs of either sign, and no other.
  const auto refused = [](DType dtype, std::uint64_t bits) {
    std::vector<std::byte> bytes(dtype_info(dtype).block_bytes);
    std::memcpy(bytes.data(), &bits, bytes.size());
    return first_non_finite_stored(dtype, bytes).has_value();
  };
  const std::tuple<DType, std::uint64_t, std::uint64_t> floats[] = {
      {DType::f64, 0x7ff0'0000'0000'0000u, std::uint64_t{1} << 63},
      {DType::f32, 0x7f80'0000u, 0x8000'0000u},
      {DType::f16, 0x7c00u, 0x8000u},
      {DType::bf16, 0x7f80u, 0x8000u}};
  for (const auto& [dtype, infinity, sign] : floats) {
    for (const std::uint64_t with : {std::uint64_t{0}, sign}) {
      EXPECT_TRUE(refused(dtype, with | infinity));
      EXPECT_TRUE(refused(dtype, with | (infinity + 1)));  // a NaN
      EXPECT_TRUE(refused(dtype, with | (sign - 1)));      // another
      EXPECT_FALSE(refused(dtype, with | (infinity - 1)));
      EXPECT_FALSE(refused(dtype, with | 1));
    }
  }
  // Each half on its own, infinite: scale and min.
  const std::byte infinity[2] = {std::byte{0x00}, std::byte{0x7c}};
  const std::pair<DType, std::vector<std::size_t>> halves[] = {
      {DType::q8_0, {0}},    {DType::q4_0, {0}},      {DType::q4_1, {0, 2}}, {DType::q5_0, {0}},
      {DType::q5_1, {0, 2}}, {DType::q2_k, {80, 82}}, {DType::q3_k, {108}},  {DType::q4_k, {0, 2}},
      {DType::q5_k, {0, 2}}, {DType::q6_k, {208}}};
  for (const auto& [dtype, offsets] : halves) {
    for (const std::size_t offset : offsets) {
      std::vector<std::byte> bytes(2 * dtype_info(dtype).block_bytes);
      std::memcpy(bytes.data() + dtype_info(dtype).block_bytes + offset, infinity, 2);
      EXPECT_EQ(first_non_finite_stored(dtype, bytes), dtype_info(dtype).block_values);
    }
  }
}

}  // namespace
}  // namespace kvlens::ops
