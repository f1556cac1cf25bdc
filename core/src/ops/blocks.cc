#include "ops/blocks.h"

#include "ops/half.h"

namespace kvlens::ops {
namespace {

unsigned at(const std::byte* bytes, std::size_t index) noexcept {
  return std::to_integer<unsigned>(bytes[index]);
}
std::int8_t small(unsigned value) noexcept { return static_cast<std::int8_t>(value); }
std::int8_t small(unsigned value, int offset) noexcept {
  return static_cast<std::int8_t>(static_cast<int>(value) + offset);
}

void set_all(Chunk& chunk, float scale, float min) noexcept {
  chunk.scale[0] = chunk.scale[1] = scale;
  chunk.min[0] = chunk.min[1] = min;
}

// Value i of a 4-bit run of 32: the low nibbles are the first half.
unsigned nibble(const std::byte* bytes, std::size_t i) noexcept {
  return i < 16 ? at(bytes, i) & 15u : at(bytes, i - 16) >> 4;
}
// 32 bits, one a value.
unsigned fifth_bit(const std::byte* bits, std::size_t i) noexcept {
  return ((at(bits, i / 8) >> (i % 8)) & 1u) << 4;
}

void read_q8_0(const std::byte* block, Chunk& chunk) noexcept {
  set_all(chunk, half_at(block), 0.0f);
  for (std::size_t i = 0; i < 32; ++i) chunk.q[i] = small(at(block, 2 + i));
}
void read_q4_0(const std::byte* block, Chunk& chunk) noexcept {
  set_all(chunk, half_at(block), 0.0f);
  for (std::size_t i = 0; i < 32; ++i) chunk.q[i] = small(nibble(block + 2, i), -8);
}
void read_q4_1(const std::byte* block, Chunk& chunk) noexcept {
  set_all(chunk, half_at(block), half_at(block + 2));
  for (std::size_t i = 0; i < 32; ++i) chunk.q[i] = small(nibble(block + 4, i));
}
void read_q5_0(const std::byte* block, Chunk& chunk) noexcept {
  set_all(chunk, half_at(block), 0.0f);
  for (std::size_t i = 0; i < 32; ++i) {
    chunk.q[i] = small(nibble(block + 6, i) | fifth_bit(block + 2, i), -16);
  }
}
void read_q5_1(const std::byte* block, Chunk& chunk) noexcept {
  set_all(chunk, half_at(block), half_at(block + 2));
  for (std::size_t i = 0; i < 32; ++i) {
    chunk.q[i] = small(nibble(block + 8, i) | fifth_bit(block + 4, i));
  }
}

// scales[16] (low nibble scale, high nibble min), qs[64], d, dmin.
void read_q2_k(const std::byte* block, std::size_t index, Chunk& chunk) noexcept {
  const float d = half_at(block + 80);
  const float dmin = half_at(block + 82);
  for (std::size_t h = 0; h < 2; ++h) {
    const unsigned scale = at(block, 2 * index + h);
    chunk.scale[h] = d * static_cast<float>(scale & 15u);
    chunk.min[h] = -(dmin * static_cast<float>(scale >> 4));
  }
  const std::byte* qs = block + 16 + 32 * (index / 4);
  for (std::size_t i = 0; i < 32; ++i) chunk.q[i] = small((at(qs, i) >> (2 * (index % 4))) & 3u);
}

// hmask[32], qs[64], scales[12] (sixteen of 6 bits, offset 32), d.
void read_q3_k(const std::byte* block, std::size_t index, Chunk& chunk) noexcept {
  const float d = half_at(block + 108);
  const std::byte* scales = block + 96;
  for (std::size_t h = 0; h < 2; ++h) {
    const std::size_t s = 2 * index + h;
    const unsigned low = (at(scales, s % 8) >> (4 * (s / 8))) & 15u;
    const unsigned high = (at(scales, 8 + s % 4) >> (2 * (s / 4))) & 3u;
    chunk.scale[h] = d * static_cast<float>(static_cast<int>(low | (high << 4)) - 32);
    chunk.min[h] = 0.0f;
  }
  const std::byte* qs = block + 32 + 32 * (index / 4);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned low = (at(qs, i) >> (2 * (index % 4))) & 3u;
    const unsigned high = (at(block, i) >> index) & 1u;
    chunk.q[i] = small(low | (high << 2), -4);
  }
}

// d, dmin, then eight scales and eight mins of 6 bits in 12 bytes, as q4_k and q5_k begin.
void read_k_scales(const std::byte* block, std::size_t index, Chunk& chunk) noexcept {
  const std::byte* scales = block + 4;
  unsigned scale = 0;
  unsigned min = 0;
  if (index < 4) {
    scale = at(scales, index) & 63u;
    min = at(scales, index + 4) & 63u;
  } else {
    scale = (at(scales, index + 4) & 15u) | ((at(scales, index - 4) >> 6) << 4);
    min = (at(scales, index + 4) >> 4) | ((at(scales, index) >> 6) << 4);
  }
  set_all(chunk, half_at(block) * static_cast<float>(scale),
          -(half_at(block + 2) * static_cast<float>(min)));
}
void read_q4_k(const std::byte* block, std::size_t index, Chunk& chunk) noexcept {
  read_k_scales(block, index, chunk);
  const std::byte* qs = block + 16 + 32 * (index / 2);
  for (std::size_t i = 0; i < 32; ++i) chunk.q[i] = small((at(qs, i) >> (4 * (index % 2))) & 15u);
}
void read_q5_k(const std::byte* block, std::size_t index, Chunk& chunk) noexcept {
  read_k_scales(block, index, chunk);
  const std::byte* qs = block + 48 + 32 * (index / 2);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned low = (at(qs, i) >> (4 * (index % 2))) & 15u;
    chunk.q[i] = small(low | (((at(block + 16, i) >> index) & 1u) << 4));
  }
}

// ql[128], qh[64], scales[16], d.
void read_q6_k(const std::byte* block, std::size_t index, Chunk& chunk) noexcept {
  const float d = half_at(block + 208);
  for (std::size_t h = 0; h < 2; ++h) {
    chunk.scale[h] = d * static_cast<float>(small(at(block, 192 + 2 * index + h)));
    chunk.min[h] = 0.0f;
  }
  const std::size_t quarter = index % 4;
  const std::byte* ql = block + 64 * (index / 4) + 32 * (quarter % 2);
  const std::byte* qh = block + 128 + 32 * (index / 4);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned low = (at(ql, i) >> (4 * (quarter / 2))) & 15u;
    const unsigned high = (at(qh, i) >> (2 * quarter)) & 3u;
    chunk.q[i] = small(low | (high << 4), -32);
  }
}

}  // namespace

void read_chunk(DType dtype, const std::byte* block, std::size_t index, Chunk& chunk) noexcept {
  switch (dtype) {
    case DType::q8_0:
      return read_q8_0(block, chunk);
    case DType::q4_0:
      return read_q4_0(block, chunk);
    case DType::q4_1:
      return read_q4_1(block, chunk);
    case DType::q5_0:
      return read_q5_0(block, chunk);
    case DType::q5_1:
      return read_q5_1(block, chunk);
    case DType::q2_k:
      return read_q2_k(block, index, chunk);
    case DType::q3_k:
      return read_q3_k(block, index, chunk);
    case DType::q4_k:
      return read_q4_k(block, index, chunk);
    case DType::q5_k:
      return read_q5_k(block, index, chunk);
    case DType::q6_k:
      return read_q6_k(block, index, chunk);
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return;  // not blocks
  }
}

}  // namespace kvlens::ops
