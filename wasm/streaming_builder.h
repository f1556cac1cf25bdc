// A ModelBuilder whose parameters are filled from outside, piece by piece, and hashed as they are
// sealed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kvlens/content_hash.h"
#include "kvlens/model.h"

namespace kvlens::js {

class StreamingBuilder {
 public:
  // Errors: as ModelBuilder.
  [[nodiscard]] static Result<std::shared_ptr<StreamingBuilder>> create(const Config& config) {
    auto builder = ModelBuilder::create(config);
    if (!builder) return std::unexpected(std::move(builder.error()));
    return std::make_shared<StreamingBuilder>(*std::move(builder));
  }
  explicit StreamingBuilder(ModelBuilder builder) : builder_(std::move(builder)) {}

  [[nodiscard]] const std::vector<ParameterSpec>& specs() const noexcept {
    return builder_.specs();
  }

  [[nodiscard]] Result<void> check_shape(const std::string& name,
                                         const std::vector<std::uint64_t>& shape) const {
    return builder_.check_shape(name, shape);
  }

  // Its size in bytes.
  [[nodiscard]] Result<std::size_t> allocate(const std::string& name, DType dtype) {
    auto bytes = builder_.allocate(name, dtype);
    if (!bytes) return std::unexpected(std::move(bytes.error()));
    open_[name] = *bytes;
    return bytes->size();
  }

  // What has been allocated and not sealed; empty for another name.
  [[nodiscard]] std::span<std::byte> open(const std::string& name) const {
    const auto found = open_.find(name);
    return found == open_.end() ? std::span<std::byte>{} : found->second;
  }

  // The hash of its bytes, taken before they are packed.
  [[nodiscard]] Result<std::uint64_t> seal(const std::string& name) {
    const std::uint64_t hash = content_hash(open(name));
    open_.erase(name);
    auto sealed = builder_.seal(name);
    if (!sealed) return std::unexpected(std::move(sealed.error()));
    return hash;
  }

  [[nodiscard]] Result<std::shared_ptr<Model>> finish() { return builder_.finish(); }

 private:
  ModelBuilder builder_;
  std::map<std::string, std::span<std::byte>> open_;
};

}  // namespace kvlens::js
