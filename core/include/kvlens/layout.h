// How the bytes of a weight matrix are arranged.
#pragma once

#include <cstdint>

namespace kvlens {

enum class Layout : std::uint8_t {
  rows,    // one row after another, as in the file
  packed,  // groups of four rows, interleaved for the integer kernels (ops/packing.h); same size
};

}  // namespace kvlens
