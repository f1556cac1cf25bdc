// A reader of small safetensors files: an 8-byte length, a JSON table, then the bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "kvlens/dtype.h"

namespace kvlens::testing {

struct StoredTensor {
  std::string name;
  DType dtype;
  std::vector<std::size_t> shape;
  std::vector<std::byte> bytes;  // row-major
};

std::vector<StoredTensor> read_safetensors(const std::filesystem::path& path);

}  // namespace kvlens::testing
