// Storage forms of a matrix: ggml blocks to floats, and row-major blocks to and from the
// interleaved order that the integer kernels stream.
//
// Interleaved: the same block of four consecutive rows becomes one packed block of four times the
// size. It has the fields of the block in their order; each field is cut in units (a half, four
// bytes of quants, one byte of scales), and unit u of row 0, 1, 2, 3 stand side by side. So one
// 16-byte vector holds four bytes of quants of each row, a dot over those leaves one row in a lane,
// and the four rows' scales come with the quants in one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "kvlens/dtype.h"
#include "ops/matrix.h"

namespace kvlens::ops {

inline constexpr std::size_t packed_rows = 4;
constexpr std::size_t whole_groups(std::size_t rows) noexcept { return rows - rows % packed_rows; }

// Row `row` as floats, [cols]. Exact: the float32 values the format stands for; f64 storage to a
// float row rounds once.
template <class T>
void dequantise_row(const MatrixView& matrix, std::size_t row, std::span<T> out) noexcept;

// Copies block `block` of row `row` to `out` in ggml's layout.
void copy_block(const MatrixView& matrix, std::size_t row, std::size_t block,
                std::byte* out) noexcept;
inline constexpr std::size_t max_block_bytes = 256;

// Whether `pack` has an interleaved form for this type.
[[nodiscard]] bool can_pack(DType dtype) noexcept;
// Rewrites whole groups of four rows of row-major storage in place, same size; rows after the last
// whole group stay row-major. `scratch` holds one group of rows. `copy_block` reads blocks back.
void pack(DType dtype, std::size_t rows, std::size_t cols, std::span<std::byte> data,
          std::span<std::byte> scratch) noexcept;

// Index (in values) of the first value or block scale of row-major storage that is NaN or infinite.
[[nodiscard]] std::optional<std::uint64_t> first_non_finite_stored(
    DType dtype, std::span<const std::byte> data) noexcept;

}  // namespace kvlens::ops
