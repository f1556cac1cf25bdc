#include "support/fixtures.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace kvlens::testing {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool contains(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}

void classify(const fs::path& path, GoldenFolder& folder) {
  if (path.extension() == ".gguf") {
    ++folder.left_to_javascript;
    return;
  }
  if (path.extension() != ".json") return;
  if (path.filename() == "golden.json") {
    if (is_file(path.parent_path() / "config.json") &&
        is_file(path.parent_path() / "model.safetensors")) {
      folder.hf_folders.push_back(path.parent_path());
    }
    return;
  }
  if (path.filename() == "config.json") return;
  const std::string text = read_file(path);
  if (contains(text, "\"rng_state_after_init\"") && contains(text, "\"generations\"")) {
    folder.course_files.push_back(path);
  } else if (contains(text, "\"bytes_base64\"") || contains(text, "\"tensor_types\"")) {
    ++folder.left_to_javascript;
  }
}

void scan_into(const fs::path& path, GoldenFolder& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  // A folder lists its entries in any order; a report that changes order is hard to compare.
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry, error)) {
      scan_into(entry, folder);
    } else {
      classify(entry, folder);
    }
  }
}

}  // namespace

fs::path fixtures_root() {
  const char* chosen = std::getenv("KVLENS_FIXTURES");
  return chosen != nullptr && *chosen != '\0' ? fs::path(chosen) : fs::path(KVLENS_FIXTURES);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot read %s: run `npm run setup` to unpack the fixtures\n",
                 path.string().c_str());
    std::abort();
  }
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

GoldenFolder scan_golden_folder(const fs::path& path) {
  GoldenFolder folder;
  folder.path = path;
  scan_into(path, folder);
  return folder;
}

std::vector<GoldenFolder> golden_folders() {
  std::vector<GoldenFolder> folders;
  folders.push_back(scan_golden_folder(fixtures_root() / "course"));
  folders.push_back(scan_golden_folder(fixtures_root() / "hf"));
  const char* extra = std::getenv("KVLENS_EXTRA_GOLDEN");
  std::istringstream paths(extra != nullptr ? extra : "");
  for (std::string path; std::getline(paths, path, ':');) {
    if (!path.empty()) folders.push_back(scan_golden_folder(path));
  }
  return folders;
}

}  // namespace kvlens::testing
