#include "kvlens/rope_spec.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kvlens {
namespace {

bool same(double a, double b) noexcept {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

bool RopeSpec::same_bits(const RopeSpec& other) const noexcept {
  return pairing == other.pairing && same(theta, other.theta) &&
         std::ranges::equal(freq_factors, other.freq_factors, same);
}

}  // namespace kvlens
