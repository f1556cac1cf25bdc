// A 64-bit hash that identifies the bytes of a parameter: the same on every machine, and fast
// enough to run over a whole model while it is loaded. Not cryptographic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace kvlens::js {

// Four lanes of multiply and fold over 8-byte little-endian words, so that the multiplications of
// one lane do not wait for those of another; the last 0..31 bytes are padded with zeros.
[[nodiscard]] inline std::uint64_t content_hash(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t prime = 0x9e3779b97f4a7c15U;
  const auto fold = [](std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * prime;
    return hash ^ (hash >> 32U);
  };
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  std::array<std::uint64_t, 4> words{};
  std::size_t offset = 0;
  for (; offset + sizeof(words) <= bytes.size(); offset += sizeof(words)) {
    std::memcpy(words.data(), bytes.data() + offset, sizeof(words));
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] = fold(lanes[lane], words[lane]);
  }
  if (offset < bytes.size()) {
    words = {};
    std::memcpy(words.data(), bytes.data() + offset, bytes.size() - offset);
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] = fold(lanes[lane], words[lane]);
  }
  std::uint64_t hash = fold(0, bytes.size());
  for (const std::uint64_t lane : lanes) hash = fold(hash, lane);
  return hash;
}

}  // namespace kvlens::js
