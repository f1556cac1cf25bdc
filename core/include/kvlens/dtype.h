// Storage types of parameters: plain floats and ggml blocks.
// Block layouts: ggml-common.h and gguf-py's quants.py of ggml-org/llama.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvlens {

#define KVLENS_DTYPES(X)                        \
  /* name, values per block, bytes per block */ \
  X(f64, 1, 8)                                  \
  X(f32, 1, 4)                                  \
  X(f16, 1, 2)                                  \
  X(bf16, 1, 2)                                 \
  X(q8_0, 32, 34)                               \
  X(q4_0, 32, 18)                               \
  X(q4_1, 32, 20)                               \
  X(q5_0, 32, 22)                               \
  X(q5_1, 32, 24)                               \
  X(q2_k, 256, 84)                              \
  X(q3_k, 256, 110)                             \
  X(q4_k, 256, 144)                             \
  X(q5_k, 256, 176)                             \
  X(q6_k, 256, 210)

enum class DType : std::uint8_t {
#define KVLENS_DTYPE_ENUM(name, values, bytes) name,
  KVLENS_DTYPES(KVLENS_DTYPE_ENUM)
#undef KVLENS_DTYPE_ENUM
};

struct DTypeInfo {
  std::string_view name;
  std::size_t block_values;  // values in one block, 1 for plain floats
  std::size_t block_bytes;
};

[[nodiscard]] DTypeInfo dtype_info(DType dtype) noexcept;
// Bytes that `n_values` take, a whole number of blocks.
[[nodiscard]] std::size_t stored_bytes(DType dtype, std::size_t n_values) noexcept;
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;
[[nodiscard]] constexpr bool is_quantised(DType dtype) noexcept { return dtype >= DType::q8_0; }

// The storage type that holds values of a compute type, double or float, as they are.
template <class T>
inline constexpr DType dtype_of = DType::f64;
template <>
inline constexpr DType dtype_of<float> = DType::f32;

}  // namespace kvlens
