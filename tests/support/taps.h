// Stage taps that record, fail or spoil at a chosen place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "kvlens/stage.h"

namespace kvlens::testing {

inline std::string describe(const StageSite& site) {
  return std::string(stage_name(site.stage)) + ", layer " + std::to_string(site.layer) +
         ", position " + std::to_string(site.position);
}

// Every site that a call passes, in order.
template <class T>
class SiteLog final : public StageTap<T> {
 public:
  struct Entry {
    StageSite site;
    std::vector<T> values;
  };
  [[nodiscard]] bool wants(Stage, std::size_t) const noexcept override { return true; }
  [[nodiscard]] Result<void> at(const StageSite& site, std::span<T> values) override {
    entries.push_back({site, {values.begin(), values.end()}});
    return {};
  }
  std::vector<Entry> entries;
};

// Fails at the `fatal`-th site (from 0).
template <class T>
class FaultTap final : public StageTap<T> {
 public:
  explicit FaultTap(std::size_t fatal) : fatal_(fatal) {}
  [[nodiscard]] bool wants(Stage, std::size_t) const noexcept override { return true; }
  [[nodiscard]] Result<void> at(const StageSite& site, std::span<T>) override {
    if (seen_++ != fatal_) return {};
    fired_ = true;
    return fail(ErrorCode::interrupted,
                SiteContext{std::string(stage_name(site.stage)), site.layer, site.position},
                "stopped at " + describe(site));
  }
  [[nodiscard]] bool fired() const { return fired_; }

 private:
  std::size_t fatal_;
  std::size_t seen_ = 0;
  bool fired_ = false;
};

// Writes NaN into one element at the `spoiled`-th site: the first element when `last` is false.
template <class T>
class NanTap final : public StageTap<T> {
 public:
  NanTap(std::size_t spoiled, bool last) : spoiled_(spoiled), last_(last) {}
  [[nodiscard]] bool wants(Stage, std::size_t) const noexcept override { return true; }
  [[nodiscard]] Result<void> at(const StageSite&, std::span<T> values) override {
    if (seen_++ == spoiled_) {
      values[last_ ? values.size() - 1 : 0] = std::numeric_limits<T>::quiet_NaN();
    }
    return {};
  }

 private:
  std::size_t spoiled_;
  bool last_;
  std::size_t seen_ = 0;
};

}  // namespace kvlens::testing
