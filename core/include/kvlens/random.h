// SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators").
#pragma once

#include <cstdint>

namespace kvlens {

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) noexcept : state_(state) {}

  [[nodiscard]] std::uint64_t state() const noexcept { return state_; }

  std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  // Uniform in [0, 1): the high 53 bits.
  double unit() noexcept { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace kvlens
