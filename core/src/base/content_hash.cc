#include "kvlens/content_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kvlens {

constexpr std::uint64_t ContentHash::round(std::uint64_t lane, std::uint64_t word) noexcept {
  return std::rotl(lane + word * prime2, 31) * prime1;
}

// Whole stripes: a little-endian word for each lane. Not inlined: engines compile a function better
// once it has run for a while, from which a call that is running has nothing.
[[gnu::noinline]] ContentHash::Lanes ContentHash::absorb_stripes(
    Lanes lanes, std::span<const std::byte> bytes) noexcept {
  Lanes words{};
  for (std::size_t offset = 0; offset < bytes.size(); offset += stripe) {
    std::memcpy(words.data(), bytes.data() + offset, stripe);
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] = round(lanes[lane], words[lane]);
  }
  return lanes;
}

template <class Word>
std::uint64_t ContentHash::pending_word(std::size_t at) const noexcept {
  Word word{};
  std::memcpy(&word, pending_.data() + at, sizeof(word));
  return word;
}

void ContentHash::absorb(std::span<const std::byte> bytes) noexcept {
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

std::uint64_t ContentHash::value() const noexcept {
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

std::uint64_t content_hash(std::span<const std::byte> bytes) noexcept {
  ContentHash hash;
  hash.absorb(bytes);
  return hash.value();
}

}  // namespace kvlens
