// A 64-bit hash that identifies bytes: XXH64 (Collet, xxHash specification 0.1.1) with seed 0. The
// same on every machine, and fast enough to run over a whole model while it is loaded and over a
// whole cache after every step. Not cryptographic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvlens {

class ContentHash {
 public:
  // How the bytes are split over calls makes no difference.
  void absorb(std::span<const std::byte> bytes) noexcept;
  // Of all bytes so far; more may follow.
  [[nodiscard]] std::uint64_t value() const noexcept;

 private:
  using Lanes = std::array<std::uint64_t, 4>;
  static constexpr std::size_t stripe = sizeof(Lanes);
  static constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87U;
  static constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4FU;
  static constexpr std::uint64_t prime3 = 0x165667B19E3779F9U;
  static constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63U;
  static constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5U;

  [[nodiscard]] static constexpr std::uint64_t round(std::uint64_t lane,
                                                     std::uint64_t word) noexcept;
  [[nodiscard]] static Lanes absorb_stripes(Lanes lanes, std::span<const std::byte> bytes) noexcept;
  template <class Word>
  [[nodiscard]] std::uint64_t pending_word(std::size_t at) const noexcept;

  Lanes lanes_{prime1 + prime2, prime2, 0, 0 - prime1};
  std::uint64_t size_ = 0;
  std::array<std::byte, stripe> pending_{};  // the first n_pending_, less than a stripe
  std::size_t n_pending_ = 0;
};

[[nodiscard]] std::uint64_t content_hash(std::span<const std::byte> bytes) noexcept;

}  // namespace kvlens
