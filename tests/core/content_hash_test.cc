// The hash of bytes: XXH64, however the bytes are split, and another value for any small change.

#include "kvlens/content_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "kvlens/random.h"

namespace kvlens {
namespace {

std::vector<std::byte> random_bytes(SplitMix64& rng, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next());
  return bytes;
}

std::uint64_t hash_of(std::string_view text) {
  return content_hash(std::as_bytes(std::span(text)));
}

// Values that implementations of XXH64 publish, seed 0; the longest has a stripe, a word, four
// bytes and single ones.
TEST(ContentHashTest, IsXxh64) {
  EXPECT_EQ(hash_of(""), 0xEF46DB3751D8E999U);
  EXPECT_EQ(hash_of("a"), 0xD24EC4F1A98C6E5BU);
  EXPECT_EQ(hash_of("abc"), 0x44BC2CF5AD770999U);
  EXPECT_EQ(hash_of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1U);
  EXPECT_EQ(hash_of("The quick brown fox jumps over the lazy dog"), 0x0B242D361FDA71BCU);
}

TEST(ContentHashTest, DoesNotDependOnHowTheBytesAreSplit) {
  SplitMix64 rng(6);
  const auto bytes = random_bytes(rng, 1000);
  for (int round = 0; round < 100; ++round) {
    ContentHash hash;
    for (std::span<const std::byte> left = bytes; !left.empty();) {
      const std::size_t n = std::min<std::size_t>(left.size(), rng.next() % 80);
      hash.absorb(left.first(n));
      left = left.subspan(n);
      ASSERT_EQ(hash.value(), content_hash(std::span(bytes).first(bytes.size() - left.size())));
    }
  }
}

TEST(ContentHashTest, AnyFlippedBitAndAnyTwoFlippedSignsGiveAnotherValue) {
  SplitMix64 rng(7);
  auto bytes = random_bytes(rng, 256);
  // Values all differ from each other too: so no third and fourth sign makes up for two.
  std::set<std::uint64_t> seen = {content_hash(bytes)};
  const auto flip = [&](std::size_t bit) { bytes[bit / 8] ^= std::byte{1} << bit % 8; };
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    flip(bit);
    EXPECT_TRUE(seen.insert(content_hash(bytes)).second) << "bit " << bit;
    flip(bit);
  }
  for (std::size_t one = 31; one < bytes.size() * 8; one += 32) {
    for (std::size_t other = one + 32; other < bytes.size() * 8; other += 32) {
      flip(one);
      flip(other);
      EXPECT_TRUE(seen.insert(content_hash(bytes)).second) << "bits " << one << ", " << other;
      flip(one);
      flip(other);
    }
  }
}

}  // namespace
}  // namespace kvlens
