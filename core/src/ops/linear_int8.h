// The integer kernels over packed groups of four rows, for one kind of dot (ops/int8_dot.h).
// Included once for each, by linear_int8_pair.cc and linear_int8_quad.cc.
//
// One input row (decode) is bound by memory: quants are unpacked in registers as they stream by,
// from several places of the matrix at once.
// Several input rows (prefill) are bound by arithmetic: a panel of weights is unpacked once into
// memory that stays in the first-level cache, and multiplied by tiles of 16 output rows x 2 input
// rows. Both compute each output with the same operations in the same order (linear.h).
#pragma once

#include <algorithm>
#include <cstddef>

#include "ops/int8_dot.h"
#include "ops/int8_formats.h"
#include "ops/linear_kernels.h"
#include "ops/packing.h"

namespace kvlens::ops {

inline constexpr std::size_t vectors_per_chunk = chunk_values / 4;

// What a chunk adds to four outputs, apart from where its quants and scales come from.
template <class Dot, std::size_t span, bool is_signed, bool with_min, int offset>
struct ChunkKernel {
  static constexpr std::size_t n_spans = chunk_values / span;
  static constexpr std::size_t vectors = vectors_per_chunk / n_spans;  // in a span
  static constexpr bool reads_weights_again = is_signed && Dot::two_vectors_of_signed_input;
  using Sum = typename Dot::Sum;

  // What the exact dot of span `index` begins with.
  template <std::size_t index>
  static KVLENS_INLINE Sum start(const Int8Block& x) noexcept {
    if constexpr (is_signed) {
      return Dot::start_signed(x.negative_count);
    } else if constexpr (n_spans == 1) {
      return Dot::start_unsigned(offset * x.count);
    } else {
      return Dot::start_unsigned(offset * x.half_count[index]);
    }
  }
  static KVLENS_INLINE auto input(const Int8Block& x, std::size_t v) noexcept {
    if constexpr (is_signed) {
      return Dot::input_for_signed(x, v);
    } else {
      return Dot::input_for_unsigned(x, v);
    }
  }
  template <class Input>
  static KVLENS_INLINE void add(Sum& sum, u8x16 quants, const Input& x) noexcept {
    if constexpr (is_signed) {
      Dot::add_signed(sum, std::bit_cast<i8x16>(quants), x);
    } else {
      Dot::add_unsigned(sum, std::bit_cast<i8x16>(quants), x);
    }
  }
  static KVLENS_INLINE void finish(f32x4& y, const Sum& sum, const Int8Block& x,
                                   f32x4 scale) noexcept {
    const f32x4 exact = __builtin_convertvector(Dot::finish(sum), f32x4);
    y = y + exact * (scale * splat(x.scale));
  }
  static KVLENS_INLINE void add_min(f32x4& y, const Int8Block& x, const f32x4* min) noexcept {
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
  unroll<vectors_per_chunk>([&](auto i) __attribute__((always_inline)) {
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
  // Of the groups of a tile side by side, so that a step's weights lie at one address and after it.
  struct Chunk {
    u8x16 quants[vectors_per_chunk][tile_groups];
    f32x4 scale[Kernel::n_spans][tile_groups];
    f32x4 min[tile_groups][Kernel::n_spans];
  };
  Chunk chunks[max_groups / tile_groups][max_chunks];
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
    const Chunk* weights = chunks[first_group / tile_groups];
    const std::size_t first = first_group % tile_groups;  // 0 but for what is left of a tile
    for (std::size_t c = 0; c < n_chunks; ++c, ++x, ++weights) {
      unroll<Kernel::n_spans>([&](auto span) __attribute__((always_inline)) {
        typename Kernel::Sum sums[n_tile_groups][n_inputs];
        for (std::size_t g = 0; g < n_tile_groups; ++g) {
          for (std::size_t r = 0; r < n_inputs; ++r) {
            sums[g][r] = Kernel::template start<span()>(x[r * x_stride]);
          }
        }
        // A loop indeed: unrolled, the eight steps of one sum end up side by side, and the operands
        // of all the others in memory.
        KVLENS_NO_UNROLL
        for (std::size_t v = span() * Kernel::vectors; v < (span() + 1) * Kernel::vectors; ++v) {
          const u8x16* quants = weights->quants[v] + first;
          for (std::size_t r = 0; r < n_inputs; ++r) {
            const auto input = Kernel::input(x[r * x_stride], v);
            for (std::size_t g = 0; g < n_tile_groups; ++g) {
              Kernel::add(sums[g][r], quants[g], input);
            }
            // Two vectors of a signed input leave no registers for weights: they are read again.
            if constexpr (Kernel::reads_weights_again) pin_address(quants);
          }
        }
        for (std::size_t g = 0; g < n_tile_groups; ++g) {
          for (std::size_t r = 0; r < n_inputs; ++r) {
            Kernel::finish(total[g][r], sums[g][r], x[r * x_stride],
                           weights->scale[span()][first + g]);
          }
        }
      });
      for (std::size_t g = 0; g < n_tile_groups; ++g) {
        for (std::size_t r = 0; r < n_inputs; ++r) {
          Kernel::add_min(total[g][r], x[r * x_stride], weights->min[first + g]);
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
    // Read at several distant places at once: hardware prefetches within a page of memory only, so
    // one stream waits at every page's beginning, where several overlap their waits. More than two
    // pay where a group needs few registers and has few bytes.
    constexpr std::size_t n_places =
        Format::is_signed || n_chunks > 1 ? 2 : Dot::most_groups_side_by_side;
    const std::size_t apart = (row_end - row_begin) / (n_places * packed_rows) * packed_rows;
    for (std::size_t row = row_begin; row < row_begin + apart; row += packed_rows) {
      stream<n_places>(matrix, row, apart, constants, product.input, product.y);
    }
    for (std::size_t row = row_begin + n_places * apart; row < row_end; row += packed_rows) {
      stream<1>(matrix, row, 0, constants, product.input, product.y);
    }
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

  // Groups `apart` rows from one another side by side, so that they share what is read of the
  // input.
  template <std::size_t n_groups>
  static KVLENS_INLINE void stream(const MatrixView& matrix, std::size_t row, std::size_t apart,
                                   const FormatConstants& constants, const Int8Block* x,
                                   float* y) noexcept {
    const std::byte* block = group(matrix, row);
    const std::size_t stride = apart / packed_rows * n_blocks(matrix) * packed_bytes;
    f32x4 total[n_groups];
    for (f32x4& each : total) each = splat(0.0f);
    for (std::size_t b = 0; b < n_blocks(matrix); ++b, block += packed_bytes) {
      BlockScales scales[n_groups];
      for (std::size_t g = 0; g < n_groups; ++g) {
        Format::scales(block + g * stride, constants, scales[g]);
      }
      unroll<n_chunks>([&](auto chunk) __attribute__((always_inline)) {
        typename Kernel::Sum sums[n_groups][n_spans];
        for (auto& each : sums) {
          unroll<n_spans>([&](auto span) __attribute__((always_inline)) {
            each[span()] = Kernel::template start<span()>(*x);
          });
        }
        for_vectors([&](auto v) __attribute__((always_inline)) {
          constexpr std::size_t span = v() / Kernel::vectors;
          const auto input = Kernel::input(*x, v());
          for (std::size_t g = 0; g < n_groups; ++g) {
            const u8x16 quants =
                Format::template quants<chunk(), v()>(block + g * stride, constants);
            Kernel::add(sums[g][span], quants, input);
            Dot::pin(sums[g][span]);
          }
        });
        for (std::size_t g = 0; g < n_groups; ++g) {
          for (std::size_t s = 0; s < n_spans; ++s) {
            Kernel::finish(total[g], sums[g][s], *x, scales[g].scale[chunk() * n_spans + s]);
          }
          Kernel::add_min(total[g], *x, scales[g].min + chunk() * n_spans);
        }
        ++x;
      });
    }
    for (std::size_t g = 0; g < n_groups; ++g) store(y + row + g * apart, total[g]);
  }

  static void fill(Panel<Kernel>& panel, const MatrixView& matrix, std::size_t row,
                   std::size_t first_block, std::size_t blocks) noexcept {
    const FormatConstants constants = load_constants();
    panel.n_chunks = blocks * n_chunks;
    for (std::size_t g = 0; g < panel.n_groups; ++g) {
      const std::byte* block = group(matrix, row + g * packed_rows) + first_block * packed_bytes;
      constexpr std::size_t tile_groups = Panel<Kernel>::tile_groups;
      auto* chunk = panel.chunks[g / tile_groups];
      const std::size_t lane = g % tile_groups;
      for (std::size_t b = 0; b < blocks; ++b, block += packed_bytes, chunk += n_chunks) {
        BlockScales scales;
        Format::scales(block, constants, scales);
        unroll<n_chunks>([&](auto c) __attribute__((always_inline)) {
          for_vectors([&](auto v) __attribute__((always_inline)) {
            chunk[c()].quants[v()][lane] = Format::template quants<c(), v()>(block, constants);
          });
          for (std::size_t s = 0; s < n_spans; ++s) {
            chunk[c()].scale[s][lane] = scales.scale[c() * n_spans + s];
            if constexpr (Format::with_min) chunk[c()].min[lane][s] = scales.min[c() * n_spans + s];
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
