// How keys and queries are rotated for their positions.
#pragma once

#include <cstdint>
#include <vector>

namespace kvlens {

// Which two elements of a head RoPE turns together (Su et al. 2021, arXiv:2104.09864).
enum class RopePairing : std::uint8_t {
  interleaved,  // (2i, 2i+1): the paper, llama2.c, GGUF llama
  half_split,   // (i, i + head_dim/2): Hugging Face, GGUF qwen
};

struct RopeSpec {
  RopePairing pairing = RopePairing::interleaved;
  double theta = 10000.0;
  // Divisor of each pair's frequency, [head_dim / 2], or empty for none (llama3 and linear
  // scaling).
  std::vector<double> freq_factors;

  // Bitwise on every float, as a cache that holds rotated keys needs.
  [[nodiscard]] bool same_bits(const RopeSpec& other) const noexcept;
};

}  // namespace kvlens
