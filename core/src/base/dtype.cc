#include "kvlens/dtype.h"

#include <iterator>

namespace kvlens {
namespace {

constexpr DTypeInfo dtypes[] = {
#define KVLENS_DTYPE_INFO(name, values, bytes) {#name, values, bytes},
    KVLENS_DTYPES(KVLENS_DTYPE_INFO)
#undef KVLENS_DTYPE_INFO
};

}  // namespace

DTypeInfo dtype_info(DType dtype) noexcept { return dtypes[static_cast<std::size_t>(dtype)]; }

std::size_t stored_bytes(DType dtype, std::size_t n_values) noexcept {
  const DTypeInfo info = dtype_info(dtype);
  return n_values / info.block_values * info.block_bytes;
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(dtypes); ++i) {
    if (dtypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace kvlens
