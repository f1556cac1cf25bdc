// A 64-bit hash that identifies the bytes of a parameter: the same on every machine, and fast
// enough to run over a whole model while it is loaded. Not cryptographic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace kvlens::js {

namespace hash {

using Lanes = std::array<std::uint64_t, 4>;

[[nodiscard]] constexpr std::uint64_t fold(std::uint64_t hash, std::uint64_t word) noexcept {
  constexpr std::uint64_t prime = 0x9e3779b97f4a7c15U;
  hash = (hash ^ word) * prime;
  return hash ^ (hash >> 32U);
}

// A whole number of words for every lane. Not inlined: engines compile a function better once it
// has run for a while, from which a call that is running has nothing.
[[nodiscard, gnu::noinline]] inline Lanes absorb(Lanes lanes,
                                                 std::span<const std::byte> bytes) noexcept {
  Lanes words{};
  for (std::size_t offset = 0; offset < bytes.size(); offset += sizeof(words)) {
    std::memcpy(words.data(), bytes.data() + offset, sizeof(words));
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] = fold(lanes[lane], words[lane]);
  }
  return lanes;
}

}  // namespace hash

// Four lanes of multiply and fold over 8-byte little-endian words, so that the multiplications of
// one lane do not wait for those of another; the last 0..31 bytes are padded with zeros.
[[nodiscard]] inline std::uint64_t content_hash(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t run = 16384;
  hash::Lanes lanes{1, 2, 3, 4};
  std::span<const std::byte> left = bytes;
  for (; left.size() >= run; left = left.subspan(run)) lanes = hash::absorb(lanes, left.first(run));
  const std::size_t whole = left.size() - left.size() % sizeof(lanes);
  lanes = hash::absorb(lanes, left.first(whole));
  left = left.subspan(whole);
  if (!left.empty()) {
    std::array<std::byte, sizeof(lanes)> padded{};
    std::memcpy(padded.data(), left.data(), left.size());
    lanes = hash::absorb(lanes, padded);
  }
  std::uint64_t result = hash::fold(0, bytes.size());
  for (const std::uint64_t lane : lanes) result = hash::fold(result, lane);
  return result;
}

}  // namespace kvlens::js
