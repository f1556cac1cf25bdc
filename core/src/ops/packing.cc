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

std::size_t row_bytes(DType dtype, std::size_t cols) noexcept {
  const DTypeInfo info = dtype_info(dtype);
  return cols / info.block_values * info.block_bytes;
}

template <class T>
void read_values(const std::byte* from, std::size_t count, DType dtype, T* out) noexcept {
  const auto each = [&]<class Stored>(Stored, auto convert) {
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

bool finite(float value) noexcept { return value * 0.0f == 0.0f; }
bool finite(double value) noexcept { return value * 0.0 == 0.0; }

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

}  // namespace

bool can_pack(DType dtype) noexcept { return !fields(dtype).empty(); }

void copy_block(const MatrixView& matrix, std::size_t row, std::size_t block,
                std::byte* out) noexcept {
  const std::size_t block_bytes = dtype_info(matrix.dtype).block_bytes;
  const std::size_t bytes_a_row = row_bytes(matrix.dtype, matrix.cols);
  const std::size_t group = row / packed_rows * packed_rows;
  if (matrix.layout == Layout::rows || group + packed_rows > matrix.rows) {
    std::memcpy(out, matrix.data + row * bytes_a_row + block * block_bytes, block_bytes);
    return;
  }
  const std::byte* packed = matrix.data + group * bytes_a_row + block * packed_rows * block_bytes;
  for_units(matrix.dtype, row - group,
            [&](std::size_t plain, std::size_t interleaved, std::size_t unit) {
              std::memcpy(out + plain, packed + interleaved, unit);
            });
}

template <class T>
void dequantise_row(const MatrixView& matrix, std::size_t row, std::span<T> out) noexcept {
  if (!is_quantised(matrix.dtype)) {
    const std::byte* from = matrix.data + row * row_bytes(matrix.dtype, matrix.cols);
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
  const std::size_t block_bytes = dtype_info(dtype).block_bytes;
  const std::size_t bytes_a_row = row_bytes(dtype, cols);
  for (std::size_t row = 0; row + packed_rows <= rows; row += packed_rows) {
    std::byte* group = data.data() + row * bytes_a_row;
    std::memcpy(scratch.data(), group, packed_rows * bytes_a_row);
    for (std::size_t block = 0; block < bytes_a_row; block += block_bytes) {
      for (std::size_t r = 0; r < packed_rows; ++r) {
        const std::byte* from = scratch.data() + r * bytes_a_row + block;
        std::byte* to = group + packed_rows * block;
        for_units(dtype, r, [&](std::size_t plain, std::size_t interleaved, std::size_t unit) {
          std::memcpy(to + interleaved, from + plain, unit);
        });
      }
    }
  }
}

void unpack(DType dtype, std::size_t rows, std::size_t cols, std::span<std::byte> data,
            std::span<std::byte> scratch) noexcept {
  if (!can_pack(dtype)) return;
  const std::size_t block_bytes = dtype_info(dtype).block_bytes;
  const std::size_t bytes_a_row = row_bytes(dtype, cols);
  for (std::size_t row = 0; row + packed_rows <= rows; row += packed_rows) {
    std::byte* group = data.data() + row * bytes_a_row;
    std::memcpy(scratch.data(), group, packed_rows * bytes_a_row);
    for (std::size_t block = 0; block < bytes_a_row; block += block_bytes) {
      for (std::size_t r = 0; r < packed_rows; ++r) {
        const std::byte* from = scratch.data() + packed_rows * block;
        std::byte* to = group + r * bytes_a_row + block;
        for_units(dtype, r, [&](std::size_t plain, std::size_t interleaved, std::size_t unit) {
          std::memcpy(to + plain, from + interleaved, unit);
        });
      }
    }
  }
}

std::optional<std::uint64_t> first_non_finite_stored(DType dtype,
                                                     std::span<const std::byte> data) noexcept {
  const DTypeInfo info = dtype_info(dtype);
  const std::size_t n_blocks = data.size() / info.block_bytes;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const std::byte* block = data.data() + b * info.block_bytes;
    bool good = true;
    if (is_quantised(dtype)) {
      for (const std::size_t offset : half_offsets(dtype))
        good = good && finite(half_at(block + offset));
    } else {
      double value = 0;
      read_values(block, 1, dtype, &value);
      good = finite(value);
    }
    if (!good) return static_cast<std::uint64_t>(b) * info.block_values;
  }
  return std::nullopt;
}

template void dequantise_row(const MatrixView&, std::size_t, std::span<float>) noexcept;
template void dequantise_row(const MatrixView&, std::size_t, std::span<double>) noexcept;

}  // namespace kvlens::ops
