// Rotary position embedding (Su et al. 2021, arXiv:2104.09864), tables made in double.
#pragma once

#include <cstddef>
#include <span>

#include "kvlens/memory.h"
#include "kvlens/rope_spec.h"

namespace kvlens::ops {

template <class T>
class RopeTable {
 public:
  // Angles of positions 0..n_positions-1: position * theta^(-2i / head_dim) / freq_factor[i].
  // Errors: size_overflow, out_of_memory.
  [[nodiscard]] static Result<RopeTable> create(const RopeSpec& spec, std::size_t head_dim,
                                                std::size_t n_positions);

  // Turns every head of a row, [n_heads, head_dim], in place. position < n_positions.
  void apply(std::size_t position, std::span<T> heads) const noexcept;

 private:
  RopePairing pairing_ = RopePairing::interleaved;
  std::size_t half_ = 0;
  Buffer<T> cosines_;  // [n_positions, head_dim / 2]
  Buffer<T> sines_;    // [n_positions, head_dim / 2]
};

}  // namespace kvlens::ops
