// The integer kernels over packed groups of four rows, for one kind of dot (ops/int8_dot.h).
// Included once for each, by linear_int8_pair.cc and linear_int8_quad.cc.
//
// One input row (decode) is bound by memory: quants are unpacked in registers as they stream by.
// Several input rows (prefill) are bound by arithmetic: a panel of weights is unpacked once into
// memory that stays in the first-level cache, and multiplied by tiles of 8 output rows x 4 input
// rows. Both compute each output with the same operations in the same order (linear.h).
#pragma once

#include <algorithm>
#include <cstddef>

#include "ops/int8_dot.h"
#include "ops/int8_formats.h"
#include "ops/linear_kernels.h"
#include "ops/packing.h"

namespace kvlens::ops {

inline constexpr std::size_t vectors_a_chunk = chunk_values / 4;

// What a chunk adds to four outputs, apart from where its quants and scales come from.
template <class Dot, std::size_t span, bool is_signed, bool with_min, int offset>
struct ChunkKernel {
  static constexpr std::size_t n_spans = chunk_values / span;
  struct Sums {
    typename Dot::Sum of[n_spans];
  };

  static KVLENS_INLINE void start(Sums& sums, const Int8Block& x) noexcept {
    if constexpr (is_signed) {
      sums.of[0] = Dot::start_signed(x.negative_count);
    } else if constexpr (n_spans == 1) {
      sums.of[0] = Dot::start_unsigned(offset * x.count);
    } else {
      sums.of[0] = Dot::start_unsigned(offset * x.half_count[0]);
      sums.of[1] = Dot::start_unsigned(offset * x.half_count[1]);
    }
  }
  template <std::size_t v>
  static KVLENS_INLINE void add(Sums& sums, u8x16 quants, const Int8Block& x) noexcept {
    typename Dot::Sum& sum = sums.of[n_spans == 1 ? 0 : v / 4];
    if constexpr (is_signed) {
      Dot::template add_signed<v>(sum, std::bit_cast<i8x16>(quants), x);
    } else {
      Dot::template add_unsigned<v>(sum, std::bit_cast<i8x16>(quants), x);
    }
  }
  static KVLENS_INLINE void pin(Sums& sums) noexcept {
    for (auto& sum : sums.of) Dot::pin(sum);
  }
  static KVLENS_INLINE void finish(f32x4& y, const Sums& sums, const Int8Block& x,
                                   const f32x4* scale, const f32x4* min) noexcept {
    for (std::size_t s = 0; s < n_spans; ++s) {
      const f32x4 exact = __builtin_convertvector(Dot::finish(sums.of[s]), f32x4);
      y = y + exact * (scale[s] * splat(x.scale));
    }
    if constexpr (with_min && n_spans == 1) {
      y = y + min[0] * splat(x.sum);
    } else if constexpr (with_min) {
      y = y + min[0] * splat(x.half_sum[0]);
      y = y + min[1] * splat(x.half_sum[1]);
    }
  }
};

// The quants of column groups 0..7 of a chunk, in an order that reads both nibbles of a byte in
// turn.
template <class F>
KVLENS_INLINE void for_vectors(F f) noexcept {
  unroll<vectors_a_chunk>([&](auto i) __attribute__((always_inline)) {
    f(std::integral_constant<std::size_t, i() / 2 + i() % 2 * 4>{});
  });
}

// Unpacked weights of some groups of rows and some chunks of their columns.
template <class Kernel>
struct Panel {
  static constexpr std::size_t max_groups = 8;
  static constexpr std::size_t max_chunks = 8;
  // Output groups x input rows of a tile: eight sums, which with what they read fit 16 registers.
  static constexpr std::size_t tile_groups = 4;
  static constexpr std::size_t tile_inputs = 2;
  struct Chunk {
    u8x16 quants[vectors_a_chunk];
    f32x4 scale[Kernel::n_spans];
    f32x4 min[Kernel::n_spans];
  };
  Chunk chunks[max_groups][max_chunks];
  std::size_t n_groups;
  std::size_t n_chunks;

  void multiply(const Int8Block* x, std::size_t x_stride, std::size_t n_inputs, bool begin,
                float* y, std::size_t y_stride) const noexcept {
    std::size_t r = 0;
    for (; r + tile_inputs <= n_inputs; r += tile_inputs) {
      multiply_inputs<tile_inputs>(x + r * x_stride, x_stride, begin, y + r * y_stride, y_stride);
    }
    for (; r < n_inputs; ++r) {
      multiply_inputs<1>(x + r * x_stride, x_stride, begin, y + r * y_stride, y_stride);
    }
  }

 private:
  template <std::size_t n_inputs>
  void multiply_inputs(const Int8Block* x, std::size_t x_stride, bool begin, float* y,
                       std::size_t y_stride) const noexcept {
    std::size_t g = 0;
    for (; g + tile_groups <= n_groups; g += tile_groups) {
      multiply_tile<tile_groups, n_inputs>(g, x, x_stride, begin, y + 4 * g, y_stride);
    }
    for (; g < n_groups; ++g) {
      for (std::size_t r = 0; r < n_inputs; ++r) {
        multiply_tile<1, 1>(g, x + r * x_stride, x_stride, begin, y + r * y_stride + 4 * g,
                            y_stride);
      }
    }
  }

  // Adds the panel's part to outputs [n_inputs, 4 * n_tile_groups] at y, or begins them.
  template <std::size_t n_tile_groups, std::size_t n_inputs>
  void multiply_tile(std::size_t first_group, const Int8Block* x, std::size_t x_stride, bool begin,
                     float* y, std::size_t y_stride) const noexcept {
    f32x4 total[n_tile_groups][n_inputs];
    for (std::size_t g = 0; g < n_tile_groups; ++g) {
      for (std::size_t r = 0; r < n_inputs; ++r) {
        total[g][r] = begin ? splat(0.0f) : load(y + r * y_stride + 4 * g);
      }
    }
    for (std::size_t c = 0; c < n_chunks; ++c, ++x) {
      typename Kernel::Sums sums[n_tile_groups][n_inputs];
      for (std::size_t g = 0; g < n_tile_groups; ++g) {
        for (std::size_t r = 0; r < n_inputs; ++r) Kernel::start(sums[g][r], x[r * x_stride]);
      }
      unroll<vectors_a_chunk>([&](auto v) __attribute__((always_inline)) {
        u8x16 quants[n_tile_groups];
        for (std::size_t g = 0; g < n_tile_groups; ++g) {
          quants[g] = chunks[first_group + g][c].quants[v()];
        }
        for (std::size_t r = 0; r < n_inputs; ++r) {
          for (std::size_t g = 0; g < n_tile_groups; ++g) {
            Kernel::template add<v()>(sums[g][r], quants[g], x[r * x_stride]);
          }
        }
        for (std::size_t g = 0; g < n_tile_groups; ++g) {
          for (std::size_t r = 0; r < n_inputs; ++r) Kernel::pin(sums[g][r]);
        }
      });
      for (std::size_t g = 0; g < n_tile_groups; ++g) {
        const Chunk& weights = chunks[first_group + g][c];
        for (std::size_t r = 0; r < n_inputs; ++r) {
          Kernel::finish(total[g][r], sums[g][r], x[r * x_stride], weights.scale, weights.min);
        }
      }
    }
    for (std::size_t g = 0; g < n_tile_groups; ++g) {
      for (std::size_t r = 0; r < n_inputs; ++r) store(y + r * y_stride + 4 * g, total[g][r]);
    }
  }
};

template <class Dot, class Format>
class Int8Kernels {
  using Kernel =
      ChunkKernel<Dot, Format::span, Format::is_signed, Format::with_min, Format::offset>;
  static constexpr std::size_t n_chunks = Format::n_chunks;  // in a block
  static constexpr std::size_t n_spans = Kernel::n_spans;    // in a chunk
  static constexpr std::size_t packed_bytes = packed_rows * block_bytes(Format::dtype);
  using BlockScales = Scales<n_chunks * n_spans>;

 public:
  // Rows [row_begin, row_end) are whole groups.
  // One input row.
  static void multiply_row(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                           const Int8Product& product) noexcept {
    const FormatConstants constants = load_constants();
    std::size_t row = row_begin;
    for (; row + 2 * packed_rows <= row_end; row += 2 * packed_rows) {
      stream<2>(matrix, row, constants, product.input, product.y + row);
    }
    if (row < row_end) stream<1>(matrix, row, constants, product.input, product.y + row);
  }

  static void multiply_rows(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                            const Int8Product& product) noexcept {
    Panel<Kernel> panel;
    constexpr std::size_t panel_rows = panel.max_groups * packed_rows;
    constexpr std::size_t panel_blocks = panel.max_chunks / n_chunks;
    for (std::size_t row = row_begin; row < row_end; row += panel_rows) {
      panel.n_groups = std::min(panel_rows, row_end - row) / packed_rows;
      for (std::size_t b = 0; b < n_blocks(matrix); b += panel_blocks) {
        const std::size_t blocks = std::min(panel_blocks, n_blocks(matrix) - b);
        fill(panel, matrix, row, b, blocks);
        panel.multiply(product.input + b * n_chunks, product.input_stride, product.n_rows, b == 0,
                       product.y + row, product.y_stride);
      }
    }
  }

 private:
  static FormatConstants load_constants() noexcept { return in_register(format_constants); }
  static std::size_t n_blocks(const MatrixView& matrix) noexcept {
    return matrix.cols / (n_chunks * chunk_values);
  }
  static const std::byte* group(const MatrixView& matrix, std::size_t row) noexcept {
    return matrix.data + row / packed_rows * n_blocks(matrix) * packed_bytes;
  }

  // Some groups of rows side by side, so that they share what is read of the input.
  template <std::size_t n_groups>
  static KVLENS_INLINE void stream(const MatrixView& matrix, std::size_t row,
                                   const FormatConstants& constants, const Int8Block* x,
                                   float* y) noexcept {
    const std::byte* block = group(matrix, row);
    const std::size_t stride = n_blocks(matrix) * packed_bytes;
    f32x4 total[n_groups];
    for (f32x4& each : total) each = splat(0.0f);
    for (std::size_t b = 0; b < n_blocks(matrix); ++b, block += packed_bytes) {
      BlockScales scales[n_groups];
      for (std::size_t g = 0; g < n_groups; ++g) {
        Format::scales(block + g * stride, constants, scales[g]);
      }
      unroll<n_chunks>([&](auto chunk) __attribute__((always_inline)) {
        typename Kernel::Sums sums[n_groups];
        for (auto& each : sums) Kernel::start(each, *x);
        for_vectors([&](auto v) __attribute__((always_inline)) {
          for (std::size_t g = 0; g < n_groups; ++g) {
            const u8x16 quants =
                Format::template quants<chunk(), v()>(block + g * stride, constants);
            Kernel::template add<v()>(sums[g], quants, *x);
          }
          for (auto& each : sums) Kernel::pin(each);
        });
        for (std::size_t g = 0; g < n_groups; ++g) {
          Kernel::finish(total[g], sums[g], *x, scales[g].scale + chunk() * n_spans,
                         scales[g].min + chunk() * n_spans);
        }
        ++x;
      });
    }
    for (std::size_t g = 0; g < n_groups; ++g) store(y + g * packed_rows, total[g]);
  }

  static void fill(Panel<Kernel>& panel, const MatrixView& matrix, std::size_t row,
                   std::size_t first_block, std::size_t blocks) noexcept {
    const FormatConstants constants = load_constants();
    panel.n_chunks = blocks * n_chunks;
    for (std::size_t g = 0; g < panel.n_groups; ++g) {
      const std::byte* block = group(matrix, row + g * packed_rows) + first_block * packed_bytes;
      auto* chunk = panel.chunks[g];
      for (std::size_t b = 0; b < blocks; ++b, block += packed_bytes, chunk += n_chunks) {
        BlockScales scales;
        Format::scales(block, constants, scales);
        unroll<n_chunks>([&](auto c) __attribute__((always_inline)) {
          for_vectors([&](auto v) __attribute__((always_inline)) {
            chunk[c()].quants[v()] = Format::template quants<c(), v()>(block, constants);
          });
          for (std::size_t s = 0; s < n_spans; ++s) {
            chunk[c()].scale[s] = scales.scale[c() * n_spans + s];
            if constexpr (Format::with_min) chunk[c()].min[s] = scales.min[c() * n_spans + s];
          }
        });
      }
    }
  }
};

// The kernels of every block type, in enum order. Called through these tables, each stays a
// function of its own, which optimising compilers of WebAssembly handle better than one that has
// them all.
template <class Dot>
void run_int8_kernels(const MatrixView& matrix, std::size_t row_begin, std::size_t row_end,
                      const Int8Product& product) noexcept {
  using Run = void (*)(const MatrixView&, std::size_t, std::size_t, const Int8Product&) noexcept;
  static constexpr Run one_row[] = {
      Int8Kernels<Dot, Q8_0>::multiply_row, Int8Kernels<Dot, Q4_0>::multiply_row,
      Int8Kernels<Dot, Q4_1>::multiply_row, Int8Kernels<Dot, Q5_0>::multiply_row,
      Int8Kernels<Dot, Q5_1>::multiply_row, Int8Kernels<Dot, Q2_K>::multiply_row,
      Int8Kernels<Dot, Q3_K>::multiply_row, Int8Kernels<Dot, Q4_K>::multiply_row,
      Int8Kernels<Dot, Q5_K>::multiply_row, Int8Kernels<Dot, Q6_K>::multiply_row};
  static constexpr Run several_rows[] = {
      Int8Kernels<Dot, Q8_0>::multiply_rows, Int8Kernels<Dot, Q4_0>::multiply_rows,
      Int8Kernels<Dot, Q4_1>::multiply_rows, Int8Kernels<Dot, Q5_0>::multiply_rows,
      Int8Kernels<Dot, Q5_1>::multiply_rows, Int8Kernels<Dot, Q2_K>::multiply_rows,
      Int8Kernels<Dot, Q3_K>::multiply_rows, Int8Kernels<Dot, Q4_K>::multiply_rows,
      Int8Kernels<Dot, Q5_K>::multiply_rows, Int8Kernels<Dot, Q6_K>::multiply_rows};
  const auto index = static_cast<std::size_t>(matrix.dtype) - static_cast<std::size_t>(DType::q8_0);
  (product.n_rows == 1 ? one_row : several_rows)[index](matrix, row_begin, row_end, product);
}

}  // namespace kvlens::ops
