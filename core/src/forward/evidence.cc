#include "kvlens/evidence.h"

#include <algorithm>

#include "base/try.h"

namespace kvlens {
template <class T>
EvidenceRecorder<T>::EvidenceRecorder(Capture capture, std::vector<std::size_t> layers)
    : capture_(capture), layers_(std::move(layers)) {}

template <class T>
bool EvidenceRecorder<T>::wants(Stage stage, std::size_t layer) const noexcept {
  if (capture_ == Capture::none) return false;
  if (capture_ == Capture::attention && stage != Stage::attention_weights) return false;
  const bool belongs_to_layer =
      stage != Stage::embedding && stage != Stage::final_norm && stage != Stage::logits;
  return !belongs_to_layer || layers_.empty() || std::ranges::find(layers_, layer) != layers_.end();
}

template <class T>
Result<void> EvidenceRecorder<T>::at(const StageSite& site, std::span<T> values) {
  KVLENS_TRY(auto copy, Buffer<T>::uninitialised(values.size()));
  std::ranges::copy(values, copy.data());
  records_.push_back({.site = site, .values = std::move(copy)});
  return {};
}

template class EvidenceRecorder<float>;
template class EvidenceRecorder<double>;

}  // namespace kvlens
