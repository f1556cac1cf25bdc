// Where the golden data lies, and which cases a folder holds.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace kvlens::testing {

// The folder of the unpacked fixtures: environment variable KVLENS_FIXTURES, else .build/fixtures.
std::filesystem::path fixtures_root();

// Whole file; ends the program with its path when it cannot be read.
std::string read_file(const std::filesystem::path& path);

// One place that golden cases are taken from, sorted by what the files are and not by their names.
struct GoldenFolder {
  std::filesystem::path path;
  std::vector<std::filesystem::path> course_files;  // config, parameters, steps, generations
  std::vector<std::filesystem::path> hf_folders;    // config.json, model.safetensors, golden.json
  std::size_t left_to_javascript = 0;               // GGUF models and block tables

  [[nodiscard]] std::size_t cases() const { return course_files.size() + hf_folders.size(); }
};

// Looks through `path` and everything below it.
GoldenFolder scan_golden_folder(const std::filesystem::path& path);

// The course and hf fixtures, then every folder named in KVLENS_EXTRA_GOLDEN (separated by colons).
std::vector<GoldenFolder> golden_folders();

}  // namespace kvlens::testing
