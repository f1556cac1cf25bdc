// A 64-bit hash that identifies bytes: XXH64 (Collet, xxHash specification 0.1.1) with seed 0. The
// same on every machine, and fast enough to run over a whole model while it is loaded and over a
// whole cache after every step. Not cryptographic.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace kvlens {

class ContentHash {
 public:
  // How the bytes are split over calls makes no difference.
  void absorb(std::span<const std::byte> bytes) noexcept {
    size_ += bytes.size();
    if (n_pending_ != 0) {
      const std::size_t n = std::min(bytes.size(), stripe - n_pending_);
      std::memcpy(pending_.data() + n_pending_, bytes.data(), n);
      n_pending_ += n;
      bytes = bytes.subspan(n);
      if (n_pending_ < stripe) return;
      lanes_ = absorb_stripes(lanes_, pending_);
      n_pending_ = 0;
    }
    constexpr std::size_t run = 16384;
    for (; bytes.size() >= run; bytes = bytes.subspan(run)) {
      lanes_ = absorb_stripes(lanes_, bytes.first(run));
    }
    const std::size_t whole = bytes.size() - bytes.size() % stripe;
    lanes_ = absorb_stripes(lanes_, bytes.first(whole));
    n_pending_ = bytes.size() - whole;
    if (n_pending_ != 0) std::memcpy(pending_.data(), bytes.data() + whole, n_pending_);
  }

  // Of all bytes so far; more may follow.
  [[nodiscard]] std::uint64_t value() const noexcept {
    std::uint64_t hash = prime5;
    if (size_ >= stripe) {
      hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
             std::rotl(lanes_[3], 18);
      for (const std::uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * prime1 + prime4;
    }
    hash += size_;
    std::size_t at = 0;
    for (; n_pending_ - at >= 8; at += 8) {
      hash = std::rotl(hash ^ round(0, pending_word<std::uint64_t>(at)), 27) * prime1 + prime4;
    }
    if (n_pending_ - at >= 4) {
      hash = std::rotl(hash ^ pending_word<std::uint32_t>(at) * prime1, 23) * prime2 + prime3;
      at += 4;
    }
    for (; at < n_pending_; ++at) {
      hash = std::rotl(hash ^ pending_word<std::uint8_t>(at) * prime5, 11) * prime1;
    }
    hash = (hash ^ hash >> 33U) * prime2;
    hash = (hash ^ hash >> 29U) * prime3;
    return hash ^ hash >> 32U;
  }

 private:
  using Lanes = std::array<std::uint64_t, 4>;
  static constexpr std::size_t stripe = sizeof(Lanes);
  static constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87U;
  static constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4FU;
  static constexpr std::uint64_t prime3 = 0x165667B19E3779F9U;
  static constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63U;
  static constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5U;

  [[nodiscard]] static constexpr std::uint64_t round(std::uint64_t lane,
                                                     std::uint64_t word) noexcept {
    return std::rotl(lane + word * prime2, 31) * prime1;
  }

  // Whole stripes: a little-endian word for each lane. Not inlined: engines compile a function
  // better once it has run for a while, from which a call that is running has nothing.
  [[nodiscard, gnu::noinline]] static Lanes absorb_stripes(
      Lanes lanes, std::span<const std::byte> bytes) noexcept {
    Lanes words{};
    for (std::size_t offset = 0; offset < bytes.size(); offset += stripe) {
      std::memcpy(words.data(), bytes.data() + offset, stripe);
      for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] = round(lanes[lane], words[lane]);
    }
    return lanes;
  }

  template <class Word>
  [[nodiscard]] std::uint64_t pending_word(std::size_t at) const noexcept {
    Word word{};
    std::memcpy(&word, pending_.data() + at, sizeof(word));
    return word;
  }

  Lanes lanes_{prime1 + prime2, prime2, 0, 0 - prime1};
  std::uint64_t size_ = 0;
  std::array<std::byte, stripe> pending_{};  // the first n_pending_, less than a stripe
  std::size_t n_pending_ = 0;
};

[[nodiscard]] inline std::uint64_t content_hash(std::span<const std::byte> bytes) noexcept {
  ContentHash hash;
  hash.absorb(bytes);
  return hash.value();
}

}  // namespace kvlens
