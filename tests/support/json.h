// nlohmann/json without exceptions. Slow to compile: included by loaders only.
#pragma once

#define JSON_NOEXCEPTION 1
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/fixtures.h"

namespace kvlens::testing {

using Json = nlohmann::json;

inline Json parse_json(const std::string& text, const std::filesystem::path& origin) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    std::fprintf(stderr, "%s is not JSON\n", origin.string().c_str());
    std::abort();
  }
  return json;
}

inline Json read_json(const std::filesystem::path& path) {
  return parse_json(read_file(path), path);
}

inline const Json& field(const Json& json, const char* name) {
  const auto it = json.find(name);
  if (it == json.end()) {
    std::fprintf(stderr, "golden data lacks the field %s\n", name);
    std::abort();
  }
  return *it;
}

inline std::uint64_t hex64(const Json& json) {
  return std::strtoull(json.get_ref<const std::string&>().c_str(), nullptr, 16);
}

inline std::vector<double> numbers(const Json& json) { return json.get<std::vector<double>>(); }
inline std::vector<std::uint32_t> ids(const Json& json) {
  return json.get<std::vector<std::uint32_t>>();
}

}  // namespace kvlens::testing
