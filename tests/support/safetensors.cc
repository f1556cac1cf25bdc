#include "support/safetensors.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/json.h"

namespace kvlens::testing {
namespace {

DType read_dtype(const std::string& name) {
  if (name == "F64") return DType::f64;
  if (name == "F32") return DType::f32;
  if (name == "F16") return DType::f16;
  if (name == "BF16") return DType::bf16;
  std::fprintf(stderr, "safetensors dtype %s is not a float type\n", name.c_str());
  std::abort();
}

}  // namespace

std::vector<StoredTensor> read_safetensors(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  std::uint64_t header_bytes = 0;
  if (file.size() >= 8) std::memcpy(&header_bytes, file.data(), 8);
  if (file.size() < 8 || header_bytes > file.size() - 8) {
    std::fprintf(stderr, "%s is not a safetensors file\n", path.string().c_str());
    std::abort();
  }
  const auto data_begin = static_cast<std::size_t>(8 + header_bytes);
  const Json header = parse_json(file.substr(8, static_cast<std::size_t>(header_bytes)), path);
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    StoredTensor tensor;
    tensor.name = name;
    tensor.dtype = read_dtype(field(entry, "dtype").get<std::string>());
    tensor.shape = field(entry, "shape").get<std::vector<std::size_t>>();
    const auto offsets = field(entry, "data_offsets").get<std::vector<std::size_t>>();
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > file.size() - data_begin) {
      std::fprintf(stderr, "%s: tensor %s lies outside the file\n", path.string().c_str(),
                   name.c_str());
      std::abort();
    }
    tensor.bytes.resize(offsets[1] - offsets[0]);
    std::memcpy(tensor.bytes.data(), file.data() + data_begin + offsets[0], tensor.bytes.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace kvlens::testing
