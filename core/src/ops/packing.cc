#include "ops/packing.h"

#include <algorithm>
#include <cstring>

#include "ops/blocks.h"
#include "ops/half.h"

namespace kvlens::ops {
namespace {

struct Field {
  std::size_t bytes;
  std::size_t unit;
};

// The fields of a block, in order; halves have unit 2, quants 4, scales of sub-blocks 1.
std::span<const Field> fields(DType dtype) noexcept {
  static constexpr Field q8_0[] = {{2, 2}, {32, 4}};
  static constexpr Field q4_0[] = {{2, 2}, {16, 4}};
  static constexpr Field q4_1[] = {{4, 2}, {16, 4}};
  static constexpr Field q5_0[] = {{2, 2}, {20, 4}};
  static constexpr Field q5_1[] = {{4, 2}, {20, 4}};
  static constexpr Field q2_k[] = {{16, 1}, {64, 4}, {4, 2}};
  static constexpr Field q3_k[] = {{96, 4}, {12, 1}, {2, 2}};
  static constexpr Field q4_k[] = {{4, 2}, {12, 1}, {128, 4}};
  static constexpr Field q5_k[] = {{4, 2}, {12, 1}, {160, 4}};
  static constexpr Field q6_k[] = {{192, 4}, {16, 1}, {2, 2}};
  switch (dtype) {
    case DType::q8_0:
      return q8_0;
    case DType::q4_0:
      return q4_0;
    case DType::q4_1:
      return q4_1;
    case DType::q5_0:
      return q5_0;
    case DType::q5_1:
      return q5_1;
    case DType::q2_k:
      return q2_k;
    case DType::q3_k:
      return q3_k;
    case DType::q4_k:
      return q4_k;
    case DType::q5_k:
      return q5_k;
    case DType::q6_k:
      return q6_k;
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return {};
  }
  return {};
}

// Calls f(offset in the block, offset in the packed block, unit) for every unit of one of the rows.
template <class F>
void for_units(DType dtype, std::size_t row_of_group, F f) noexcept {
  std::size_t start = 0;
  for (const Field& field : fields(dtype)) {
    for (std::size_t u = 0; u < field.bytes; u += field.unit) {
      f(start + u, packed_rows * (start + u) + row_of_group * field.unit, field.unit);
    }
    start += field.bytes;
  }
}

template <class T>
void read_values(const std::byte* from, std::size_t count, DType dtype, T* out) noexcept {
  const auto each = [&]<class Stored>(Stored, auto convert) {
    KVLENS_NO_UNROLL
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = static_cast<T>(convert(load_as<Stored>(from + i * sizeof(Stored))));
    }
  };
  const auto as_is = [](auto value) { return value; };
  const auto as_float = [](auto value) { return to_float(value); };
  if (dtype == DType::f64) each(double{}, as_is);
  if (dtype == DType::f32) each(float{}, as_is);
  if (dtype == DType::f16) each(Half{}, as_float);
  if (dtype == DType::bf16) each(BFloat16{}, as_float);
}

// Transposes four rows of four units; written as loads and stores, compilers copy it unit by unit.
void interleave_sixteen_bytes(const std::byte* from, std::size_t stride, std::byte* to) noexcept {
  const auto a = load_as<u32x4>(from);
  const auto b = load_as<u32x4>(from + stride);
  const auto c = load_as<u32x4>(from + 2 * stride);
  const auto d = load_as<u32x4>(from + 3 * stride);
  const u32x4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const u32x4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const u32x4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const u32x4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const u32x4 columns[] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                           __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                           __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                           __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  std::memcpy(to, columns, sizeof columns);
}

// A field of four rows that lie `stride` bytes apart.
template <std::size_t unit>
void interleave(const std::byte* from, std::size_t stride, std::size_t bytes,
                std::byte* to) noexcept {
  std::size_t u = 0;
  if constexpr (unit == 4) {
    for (; u + 16 <= bytes; u += 16) interleave_sixteen_bytes(from + u, stride, to + 4 * u);
  }
  for (; u < bytes; u += unit) {
    for (std::size_t r = 0; r < packed_rows; ++r) {
      std::memcpy(to + packed_rows * u + r * unit, from + r * stride + u, unit);
    }
  }
}

// Four rows of `bytes_per_row` at `from`. Not inlined: an engine that compiles a WebAssembly
// function better once it has run for a while lets the next call profit, not the one that is
// running.
[[gnu::noinline]] void pack_group(DType dtype, const std::byte* from, std::size_t bytes_per_row,
                                  std::byte* to) noexcept {
  const std::span<const Field> all = fields(dtype);
  for (const std::byte* const end = from + bytes_per_row; from < end;) {
    for (const auto& [bytes, unit] : all) {
      if (unit == 4) interleave<4>(from, bytes_per_row, bytes, to);
      if (unit == 2) interleave<2>(from, bytes_per_row, bytes, to);
      if (unit == 1) interleave<1>(from, bytes_per_row, bytes, to);
      from += bytes;
      to += packed_rows * bytes;
    }
  }
}

// Whether no exponent is all ones: in the Bits at `from`, each `stride` bytes after the last.
template <class Bits, Bits exponent>
bool all_finite(const std::byte* from, std::size_t count, std::size_t stride) noexcept {
  bool good = true;
  for (std::size_t i = 0; i < count; ++i) {
    good &= (load_as<Bits>(from + i * stride) & exponent) != exponent;
  }
  return good;
}

// Byte offsets of a block's halves.
std::span<const std::size_t> half_offsets(DType dtype) noexcept {
  static constexpr std::size_t first[] = {0};
  static constexpr std::size_t first_two[] = {0, 2};
  static constexpr std::size_t q2_k[] = {80, 82};
  static constexpr std::size_t q3_k[] = {108};
  static constexpr std::size_t q6_k[] = {208};
  switch (dtype) {
    case DType::q2_k:
      return q2_k;
    case DType::q3_k:
      return q3_k;
    case DType::q6_k:
      return q6_k;
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k:
      return first_two;
    default:
      return first;
  }
}

// Not inlined, as pack_group.
[[gnu::noinline]] bool blocks_finite(DType dtype, const std::byte* from,
                                     std::size_t count) noexcept {
  switch (dtype) {
    case DType::f64:
      return all_finite<std::uint64_t, 0x7ff0'0000'0000'0000u>(from, count, 8);
    case DType::f32:
      return all_finite<std::uint32_t, 0x7f80'0000u>(from, count, 4);
    case DType::f16:
      return all_finite<std::uint16_t, 0x7c00u>(from, count, 2);
    case DType::bf16:
      return all_finite<std::uint16_t, 0x7f80u>(from, count, 2);
    default:
      return std::ranges::all_of(half_offsets(dtype), [&](std::size_t offset) {
        return all_finite<std::uint16_t, 0x7c00u>(from + offset, count,
                                                  dtype_info(dtype).block_bytes);
      });
  }
}

}  // namespace

bool can_pack(DType dtype) noexcept { return !fields(dtype).empty(); }

void copy_block(const MatrixView& matrix, std::size_t row, std::size_t block,
                std::byte* out) noexcept {
  const std::size_t block_bytes = dtype_info(matrix.dtype).block_bytes;
  const std::size_t bytes_per_row = stored_bytes(matrix.dtype, matrix.cols);
  const std::size_t group = row / packed_rows * packed_rows;
  if (matrix.layout == Layout::rows || group + packed_rows > matrix.rows) {
    std::memcpy(out, matrix.data + row * bytes_per_row + block * block_bytes, block_bytes);
    return;
  }
  const std::byte* packed = matrix.data + group * bytes_per_row + block * packed_rows * block_bytes;
  for_units(matrix.dtype, row - group,
            [&](std::size_t plain, std::size_t interleaved, std::size_t unit) {
              std::memcpy(out + plain, packed + interleaved, unit);
            });
}

template <class T>
void dequantise_row(const MatrixView& matrix, std::size_t row, std::span<T> out) noexcept {
  if (!is_quantised(matrix.dtype)) {
    const std::byte* from = matrix.data + row * stored_bytes(matrix.dtype, matrix.cols);
    read_values(from, matrix.cols, matrix.dtype, out.data());
    return;
  }
  const std::size_t block_values = dtype_info(matrix.dtype).block_values;
  std::byte block[max_block_bytes];
  Chunk chunk;
  T* to = out.data();
  for (std::size_t b = 0; b < matrix.cols / block_values; ++b) {
    copy_block(matrix, row, b, block);
    for (std::size_t c = 0; c < block_values / chunk_values; ++c) {
      read_chunk(matrix.dtype, block, c, chunk);
      const bool with_min = has_min(matrix.dtype);
      for (std::size_t i = 0; i < chunk_values; ++i) {
        const float product = chunk.scale[i / 16] * static_cast<float>(chunk.q[i]);
        *to++ = static_cast<T>(with_min ? product + chunk.min[i / 16] : product);
      }
    }
  }
}

void pack(DType dtype, std::size_t rows, std::size_t cols, std::span<std::byte> data,
          std::span<std::byte> scratch) noexcept {
  if (!can_pack(dtype)) return;
  const std::size_t bytes_per_row = stored_bytes(dtype, cols);
  for (std::size_t row = 0; row + packed_rows <= rows; row += packed_rows) {
    std::byte* group = data.data() + row * bytes_per_row;
    std::memcpy(scratch.data(), group, packed_rows * bytes_per_row);
    pack_group(dtype, scratch.data(), bytes_per_row, group);
  }
}

std::optional<std::uint64_t> first_non_finite_stored(DType dtype,
                                                     std::span<const std::byte> data) noexcept {
  const DTypeInfo info = dtype_info(dtype);
  const std::size_t n_blocks = data.size() / info.block_bytes;
  // Most storage is finite throughout: whole runs are asked first, and single blocks in a bad one.
  constexpr std::size_t run = 1024;
  for (std::size_t begin = 0; begin < n_blocks; begin += run) {
    const std::size_t count = std::min(run, n_blocks - begin);
    const std::byte* from = data.data() + begin * info.block_bytes;
    if (blocks_finite(dtype, from, count)) continue;
    std::size_t bad = 0;
    while (blocks_finite(dtype, from + bad * info.block_bytes, 1)) ++bad;
    return static_cast<std::uint64_t>(begin + bad) * info.block_values;
  }
  return std::nullopt;
}

template void dequantise_row(const MatrixView&, std::size_t, std::span<float>) noexcept;
template void dequantise_row(const MatrixView&, std::size_t, std::span<double>) noexcept;

}  // namespace kvlens::ops
