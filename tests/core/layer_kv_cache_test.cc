// One layer's cache: rows of batch lanes, all or nothing.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kvlens/content_hash.h"
#include "kvlens/kv_cache.h"
#include "support/cache_rows.h"
#include "support/expect.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::keys_of;
using testing::must;
using testing::same_bits;
using testing::values_of;

// 2 lanes, 2 KV heads of 2, room for 3 rows of the 5 positions the model knows.
LayerGeometry small_geometry() {
  return {.batch = 2, .n_kv_heads = 2, .head_dim = 2, .capacity = 3, .max_seq_len = 5, .rope = {}};
}

template <class T>
class LayerKvCacheTest : public ::testing::Test {
 protected:
  LayerKvCache<T> cache_ = must(LayerKvCache<T>::create(small_geometry()));
  // [batch, n_kv_heads, head_dim], distinct in every element: first, first + 1, ...
  static std::vector<T> row(int first) {
    std::vector<T> values(8);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(first) + static_cast<T>(i);
    return values;
  }
  void expect_one_row_of(const std::vector<T>& keys, const std::vector<T>& values) {
    ASSERT_EQ(cache_.len(), 1U);
    for (std::size_t lane = 0; lane < 2; ++lane) {
      for (std::size_t head = 0; head < 2; ++head) {
        const std::size_t at = (lane * 2 + head) * 2;
        EXPECT_TRUE(
            same_bits<T>(keys_of(cache_, lane, head), std::span<const T>(keys).subspan(at, 2)));
        EXPECT_TRUE(
            same_bits<T>(values_of(cache_, lane, head), std::span<const T>(values).subspan(at, 2)));
      }
    }
  }
};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(LayerKvCacheTest, ComputeTypes);

TYPED_TEST(LayerKvCacheTest, IsEmptyWhenMade) {
  EXPECT_EQ(this->cache_.len(), 0U);
  EXPECT_EQ(keys_of(this->cache_, 1, 1).size(), 0U);
  EXPECT_EQ(this->cache_.bytes(), 2U * 2 * 2 * 3 * 2 * sizeof(TypeParam));
}

TYPED_TEST(LayerKvCacheTest, AppendPutsEachLanesHeadsInRowsOfTheirOwn) {
  using T = TypeParam;
  must(this->cache_.append(this->row(0), this->row(100)));
  must(this->cache_.append(this->row(10), this->row(110)));
  // Lane 1, head 0 has elements 4 and 5 of each row.
  EXPECT_TRUE(same_bits<T>(keys_of(this->cache_, 1, 0), std::vector<T>{4, 5, 14, 15}));
  EXPECT_TRUE(same_bits<T>(values_of(this->cache_, 0, 1), std::vector<T>{102, 103, 112, 113}));
}

TYPED_TEST(LayerKvCacheTest, AppendPastCapacityFailsAndKeepsEveryRow) {
  for (int i = 0; i < 3; ++i) must(this->cache_.append(this->row(i), this->row(50 + i)));
  const std::uint64_t hash = this->cache_.content_hash(3);
  const auto limit = expect_error<LimitContext>(
      this->cache_.append(this->row(9), this->row(59)), ErrorCode::cache_full,
      "cache is full: it would hold 4 rows, capacity is 3");
  EXPECT_EQ(limit.value, 4U);
  EXPECT_EQ(limit.limit, 3U);
  EXPECT_EQ(this->cache_.len(), 3U);
  EXPECT_EQ(this->cache_.content_hash(3), hash);
}

TYPED_TEST(LayerKvCacheTest, AppendOfAnotherShapeNamesWhichTensorAndChangesNothing) {
  using T = TypeParam;
  must(this->cache_.append(this->row(0), this->row(100)));
  const std::vector<T> narrow(7);
  const auto keys = expect_error<ShapeContext>(this->cache_.append(narrow, this->row(1)),
                                               ErrorCode::shape_mismatch);
  EXPECT_EQ(keys.name, "keys");
  EXPECT_EQ(keys.actual, std::vector<std::uint64_t>{7});
  const auto values = expect_error<ShapeContext>(this->cache_.append(this->row(1), narrow),
                                                 ErrorCode::shape_mismatch);
  EXPECT_EQ(values.name, "values");
  this->expect_one_row_of(this->row(0), this->row(100));
}

TYPED_TEST(LayerKvCacheTest, AppendOfANonFiniteKeyOrValueSaysWhereAndChangesNothing) {
  using T = TypeParam;
  must(this->cache_.append(this->row(0), this->row(100)));
  for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity()}) {
    for (std::size_t index = 0; index < 8; ++index) {
      auto spoiled = this->row(1);
      spoiled[index] = bad;
      const auto key = expect_error<ValueContext>(this->cache_.append(spoiled, this->row(1)),
                                                  ErrorCode::non_finite_value);
      EXPECT_EQ(key.tensor, "keys");
      EXPECT_EQ(key.index, index);
      EXPECT_EQ(std::isnan(key.value), std::isnan(bad));
      const auto value = expect_error<ValueContext>(this->cache_.append(this->row(1), spoiled),
                                                    ErrorCode::non_finite_value);
      EXPECT_EQ(value.tensor, "values");
      EXPECT_EQ(value.index, index);
      this->expect_one_row_of(this->row(0), this->row(100));
    }
  }
}

TYPED_TEST(LayerKvCacheTest, ResetKeepsTheAllocationAndItsBytes) {
  must(this->cache_.append(this->row(3), this->row(4)));
  const std::byte* data = this->cache_.key_rows(0, 0);
  const std::uint64_t storage = this->cache_.storage_id();
  const std::uint64_t hash = this->cache_.content_hash(1);
  const std::size_t bytes = this->cache_.bytes();
  this->cache_.reset();
  EXPECT_EQ(this->cache_.len(), 0U);
  EXPECT_EQ(this->cache_.key_rows(0, 0), data);
  EXPECT_EQ(this->cache_.storage_id(), storage);
  EXPECT_EQ(this->cache_.bytes(), bytes);
  EXPECT_EQ(this->cache_.content_hash(1), hash);
}

TYPED_TEST(LayerKvCacheTest, EachHasStorageOfItsOwn) {
  const auto other = must(LayerKvCache<TypeParam>::create(small_geometry()));
  EXPECT_NE(other.storage_id(), this->cache_.storage_id());
  EXPECT_NE(other.key_rows(0, 0), this->cache_.key_rows(0, 0));
}

TYPED_TEST(LayerKvCacheTest, TruncateKeepsTheFirstRowsAndRefusesMoreThanThereAre) {
  must(this->cache_.append(this->row(0), this->row(100)));
  must(this->cache_.append(this->row(1), this->row(101)));
  const auto limit =
      expect_error<LimitContext>(this->cache_.truncate(3), ErrorCode::invalid_length);
  EXPECT_EQ(limit.value, 3U);
  EXPECT_EQ(limit.limit, 2U);
  EXPECT_EQ(this->cache_.len(), 2U);
  must(this->cache_.truncate(1));
  this->expect_one_row_of(this->row(0), this->row(100));
}

TYPED_TEST(LayerKvCacheTest, PreparedRowsAreScratchUntilTheyAreCommitted) {
  using T = TypeParam;
  must(this->cache_.append(this->row(0), this->row(100)));
  const std::uint64_t hash = this->cache_.content_hash(1);
  const std::vector<T> key = {1, 2, 3, 4};
  const std::vector<T> value = {5, 6, 7, 8};
  for (std::size_t lane = 0; lane < 2; ++lane) {
    must(this->cache_.prepare(lane, 0, key, value));
    must(this->cache_.prepare(lane, 1, value, key));
  }
  EXPECT_EQ(this->cache_.len(), 1U);
  EXPECT_EQ(keys_of(this->cache_, 0, 0).size(), 2U);
  EXPECT_EQ(this->cache_.content_hash(1), hash);
  must(this->cache_.commit(this->cache_.prepared(2)));
  EXPECT_EQ(this->cache_.len(), 3U);
  EXPECT_TRUE(same_bits<T>(keys_of(this->cache_, 1, 1), std::vector<T>{6, 7, 3, 4, 7, 8}));
}

TYPED_TEST(LayerKvCacheTest, PreparePastCapacityOrOfAnotherShapeFails) {
  using T = TypeParam;
  const std::vector<T> row = {1, 2, 3, 4};
  const std::vector<T> narrow = {1, 2};
  expect_error<LimitContext>(this->cache_.prepare(0, 3, row, row), ErrorCode::cache_full);
  expect_error<ShapeContext>(this->cache_.prepare(0, 0, narrow, row), ErrorCode::shape_mismatch);
  expect_error<ShapeContext>(this->cache_.prepare(0, 0, row, narrow), ErrorCode::shape_mismatch);
  const std::vector<T> spoiled = {1, 2, std::numeric_limits<T>::quiet_NaN(), 4};
  const auto context = expect_error<ValueContext>(this->cache_.prepare(0, 0, row, spoiled),
                                                  ErrorCode::non_finite_value);
  EXPECT_EQ(context.index, 2U);
  EXPECT_EQ(this->cache_.len(), 0U);
}

TYPED_TEST(LayerKvCacheTest, RowsPreparedForAnotherLengthAreNotCommitted) {
  const PreparedRows stale = this->cache_.prepared(1);
  must(this->cache_.append(this->row(0), this->row(100)));
  const auto context =
      expect_error<MismatchContext>(this->cache_.commit(stale), ErrorCode::cache_changed,
                                    "rows were prepared at length 0, the cache now has 1");
  EXPECT_EQ(context.expected, 0U);
  EXPECT_EQ(context.actual, 1U);
  this->expect_one_row_of(this->row(0), this->row(100));
}

TYPED_TEST(LayerKvCacheTest, RowsPreparedForOtherStorageAreNotCommitted) {
  const PreparedRows rows = this->cache_.prepared(1);
  this->cache_ = must(LayerKvCache<TypeParam>::create(small_geometry()));
  const auto context =
      expect_error<MismatchContext>(this->cache_.commit(rows), ErrorCode::cache_changed);
  EXPECT_EQ(context.expected, rows.storage_id);
  EXPECT_EQ(context.actual, this->cache_.storage_id());
  EXPECT_EQ(this->cache_.len(), 0U);
}

TYPED_TEST(LayerKvCacheTest, MoreRowsThanThereIsRoomForAreNotCommitted) {
  const auto limit = expect_error<LimitContext>(this->cache_.commit(this->cache_.prepared(4)),
                                                ErrorCode::cache_full);
  EXPECT_EQ(limit.value, 4U);
  EXPECT_EQ(limit.limit, 3U);
  EXPECT_EQ(this->cache_.len(), 0U);
}

// The bytes of `values` in one piece.
template <class T>
std::uint64_t hash_of(const std::vector<T>& values) {
  return content_hash(std::as_bytes(std::span(values)));
}

TYPED_TEST(LayerKvCacheTest, ContentHashIsThatOfTheHashesOfEachHeadsKeysAndValues) {
  using T = TypeParam;
  // Rows of 24 and 48 bytes a head: less than a stripe of the hash, and no multiple of one.
  auto cache = must(LayerKvCache<T>::create(
      {.batch = 1, .n_kv_heads = 2, .head_dim = 6, .capacity = 4, .max_seq_len = 4, .rope = {}}));
  // Keys and values of the first head, then of the second.
  std::array<std::vector<T>, 4> streams;
  const auto hash_of_all = [&] {
    std::vector<std::uint64_t> hashes;
    hashes.reserve(streams.size());
    for (const std::vector<T>& stream : streams) hashes.push_back(hash_of(stream));
    return hash_of(hashes);
  };
  std::vector<std::uint64_t> expected = {hash_of_all()};
  EXPECT_EQ(cache.content_hash(0), expected[0]);
  for (int row = 0; row < 3; ++row) {
    std::vector<T> keys(12);
    std::vector<T> values(12);
    std::iota(keys.begin(), keys.end(), T(100 * row));
    std::iota(values.begin(), values.end(), T(100 * row + 50));
    must(cache.append(keys, values));
    for (std::size_t head = 0; head < 2; ++head) {
      const auto part = [&](const std::vector<T>& from) {
        return std::span(from).subspan(6 * head, 6);
      };
      streams[2 * head].insert(streams[2 * head].end(), part(keys).begin(), part(keys).end());
      streams[2 * head + 1].insert(streams[2 * head + 1].end(), part(values).begin(),
                                   part(values).end());
    }
    expected.push_back(hash_of_all());
    EXPECT_EQ(cache.content_hash(cache.len()), expected.back());
  }
  const std::array<std::size_t, 5> lengths = {3, 0, 2, 1, 3};
  std::array<std::uint64_t, 5> hashes{};
  cache.content_hashes(lengths, hashes);
  for (std::size_t i = 0; i < lengths.size(); ++i) EXPECT_EQ(hashes[i], expected[lengths[i]]);
}

TEST(LayerKvCacheCreateTest, NeedsABatchAndACapacityWithinTheModelsPositions) {
  const auto create = [](auto change) {
    LayerGeometry geometry = small_geometry();
    change(geometry);
    return LayerKvCache<double>::create(geometry);
  };
  expect_error<NoContext>(create([](auto& g) { g.batch = 0; }), ErrorCode::zero_batch);
  expect_error<NoContext>(create([](auto& g) { g.capacity = 0; }), ErrorCode::zero_capacity);
  const auto limit = expect_error<LimitContext>(
      create([](auto& g) { g.capacity = 6; }), ErrorCode::capacity_exceeds_max_seq_len,
      "cache capacity is 6, the model's max_seq_len is 5");
  EXPECT_EQ(limit.value, 6U);
  EXPECT_EQ(limit.limit, 5U);
  EXPECT_TRUE(testing::succeeded(create([](auto& g) { g.capacity = 5; })));
  EXPECT_TRUE(testing::succeeded(create([](auto& g) { g.capacity = 1; })));
}

TEST(LayerKvCacheCreateTest, StoresTheComputeTypeOrForFloatBFloat16OrQ8_0) {
  EXPECT_EQ(must(LayerKvCache<double>::create(small_geometry())).dtype(), DType::f64);
  EXPECT_EQ(must(LayerKvCache<float>::create(small_geometry())).dtype(), DType::f32);
  const auto halved = must(LayerKvCache<float>::create(small_geometry(), DType::bf16));
  EXPECT_EQ(halved.dtype(), DType::bf16);
  EXPECT_EQ(halved.bytes(), 2U * 2 * 2 * 3 * 2 * 2);
  const auto context = expect_error<FieldContext>(
      LayerKvCache<double>::create(small_geometry(), DType::bf16), ErrorCode::invalid_argument,
      "kv_dtype is bf16, must be f64 where f64 is computed");
  EXPECT_EQ(context.field, "kv_dtype");
  for (const DType dtype : {DType::f64, DType::f16, DType::q4_0}) {
    expect_error<FieldContext>(LayerKvCache<float>::create(small_geometry(), dtype),
                               ErrorCode::invalid_argument);
  }
  LayerGeometry geometry = small_geometry();
  expect_error<FieldContext>(
      LayerKvCache<float>::create(geometry, DType::q8_0), ErrorCode::invalid_argument,
      "kv_dtype is q8_0, must be f32 or bf16 where f32 is computed and head_dim is 2");
  geometry.head_dim = 544;
  expect_error<FieldContext>(LayerKvCache<float>::create(geometry, DType::q8_0),
                             ErrorCode::invalid_argument);
  geometry.head_dim = 64;
  const auto blocks = must(LayerKvCache<float>::create(geometry, DType::q8_0));
  EXPECT_EQ(blocks.dtype(), DType::q8_0);
  EXPECT_EQ(blocks.row_bytes(), 2U * 34);
  EXPECT_EQ(blocks.bytes(), 2U * 2 * 2 * 3 * 68);
  expect_error<FieldContext>(LayerKvCache<float>::create(geometry, DType::f16),
                             ErrorCode::invalid_argument,
                             "kv_dtype is f16, must be f32, bf16 or q8_0 where f32 is computed");
}

// The largest bfloat16 is 0x1.fep127; a float nearer to the next power of two has none.
TEST(BFloat16LayerCacheTest, HoldsRowsRoundedAndRefusesWhatWouldBecomeInfinite) {
  auto cache = must(LayerKvCache<float>::create(small_geometry(), DType::bf16));
  const std::vector<float> keys = {1, 1 + 0x1p-9f, 1 + 0x3p-8f, -0x1.fep127f, 0, -0.0f, 3, 1e-30f};
  const std::vector<float> values(8, 0.1f);
  must(cache.append(keys, values));
  EXPECT_TRUE(same_bits<float>(keys_of(cache, 0, 0), std::vector<float>{1, 1}));
  EXPECT_TRUE(
      same_bits<float>(keys_of(cache, 0, 1), std::vector<float>{1 + 0x2p-7f, -0x1.fep127f}));
  EXPECT_TRUE(same_bits<float>(values_of(cache, 1, 0), std::vector<float>(2, 0x1.9ap-4f)));
  const std::uint64_t hash = cache.content_hash(1);
  auto large = keys;
  large[5] = 0x1.ffp127f;
  const auto context =
      expect_error<ValueContext>(cache.append(large, values), ErrorCode::non_finite_value);
  EXPECT_EQ(context.tensor, "keys");
  EXPECT_EQ(context.index, 5U);
  EXPECT_EQ(cache.len(), 1U);
  EXPECT_EQ(cache.content_hash(1), hash);
}

// Each block of 32 has a scale of its own, the least half that is not below its largest magnitude's
// 127th part.
TEST(Q8LayerCacheTest, HoldsRowsRoundedByTheBlockAndRefusesWhatHasNoScale) {
  LayerGeometry geometry = small_geometry();
  geometry.batch = 1;
  geometry.n_kv_heads = 1;
  geometry.head_dim = 64;
  auto cache = must(LayerKvCache<float>::create(geometry, DType::q8_0));
  std::vector<float> keys(64, 0.0f);
  keys[0] = 127;
  keys[1] = -3.5f;  // a tie, to even
  keys[2] = 2.5f;
  keys[3] = 0.49f;
  keys[40] = 127 * 65504.0f;
  keys[41] = -32752.5f;
  const std::vector<float> values(64, 0.1f);
  must(cache.append(keys, values));
  std::vector<float> expected(64, 0.0f);
  expected[0] = 127;
  expected[1] = -4;
  expected[2] = 2;
  expected[40] = 127 * 65504.0f;
  expected[41] = -65504;
  EXPECT_TRUE(same_bits<float>(keys_of(cache, 0, 0), expected));
  // 0.1 / 127 lies between the halves 1651 and 1652 times 2^-21.
  EXPECT_TRUE(same_bits<float>(values_of(cache, 0, 0), std::vector<float>(64, 127 * 0x1.9dp-11f)));
  const std::uint64_t hash = cache.content_hash(1);
  auto large = keys;
  large[41] = -8319009;
  const auto context = expect_error<ValueContext>(
      cache.append(large, values), ErrorCode::non_finite_value,
      "keys at index 41 is -8319009.000000, beyond the largest that q8_0 can hold");
  EXPECT_EQ(context.index, 41U);
  EXPECT_EQ(cache.len(), 1U);
  EXPECT_EQ(cache.content_hash(1), hash);
}

TEST(LayerKvCacheCreateTest, AnElementCountThatOverflowsIsAnError) {
  LayerGeometry geometry = small_geometry();
  geometry.batch = std::numeric_limits<std::size_t>::max() / 2;
  expect_error<NoContext>(LayerKvCache<double>::create(geometry), ErrorCode::size_overflow);
  // The product fits, the bytes do not.
  geometry.batch = std::numeric_limits<std::size_t>::max() / 64;
  expect_error<NoContext>(LayerKvCache<double>::create(geometry), ErrorCode::size_overflow);
}

}  // namespace
}  // namespace kvlens
