// ggml blocks, one at a time: the scalar meaning of every block format.
//
// A block is read in chunks of 32 values. A value is scale * q + min with its half's scale and min
// (formats whose scale covers 32 values give both halves the same), which are the float32
// operations that define the format, in their order. Layouts: ggml-common.h and gguf-py's quants.py
// of ggml-org/llama.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kvlens/dtype.h"

namespace kvlens::ops {

inline constexpr std::size_t chunk_values = 32;

struct Chunk {
  std::int8_t q[chunk_values];
  float scale[2];  // of values 0..15 and 16..31
  float min[2];    // 0 where the format has none
};

// Chunk `index` of the block at `block`.
void read_chunk(DType dtype, const std::byte* block, std::size_t index, Chunk& chunk) noexcept;

constexpr std::size_t block_bytes(DType dtype) noexcept {
  constexpr std::size_t bytes_of[] = {
#define KVLENS_BLOCK_BYTES(name, values, bytes) bytes,
      KVLENS_DTYPES(KVLENS_BLOCK_BYTES)
#undef KVLENS_BLOCK_BYTES
  };
  return bytes_of[static_cast<std::size_t>(dtype)];
}
// Values that share a scale: 16 or 32.
constexpr std::size_t scale_span(DType dtype) noexcept {
  return dtype == DType::q2_k || dtype == DType::q3_k || dtype == DType::q6_k ? 16 : 32;
}
constexpr bool has_min(DType dtype) noexcept {
  return dtype == DType::q4_1 || dtype == DType::q5_1 || dtype == DType::q2_k ||
         dtype == DType::q4_k || dtype == DType::q5_k;
}

}  // namespace kvlens::ops
