// An EvidenceRecorder that starts at a position, so that it can record the last row of a long
// prompt alone.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kvlens/evidence.h"

namespace kvlens::js {

template <class T>
class RowRecorder final : public StageTap<T> {
 public:
  RowRecorder(const Config& /*config*/, Capture capture, std::vector<std::size_t> layers,
              std::size_t first_position)
      : recorder_(capture, std::move(layers)), first_position_(first_position) {}

  [[nodiscard]] bool wants(Stage stage, std::size_t layer) const noexcept override {
    return recorder_.wants(stage, layer);
  }
  [[nodiscard]] Result<void> at(const StageSite& site, std::span<T> values) override {
    return site.position < first_position_ ? Result<void>{} : recorder_.at(site, values);
  }

  [[nodiscard]] std::span<const typename EvidenceRecorder<T>::Record> records() const noexcept {
    return recorder_.records();
  }

 private:
  EvidenceRecorder<T> recorder_;
  std::size_t first_position_;
};

}  // namespace kvlens::js
