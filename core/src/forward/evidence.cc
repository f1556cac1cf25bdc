#include "kvlens/evidence.h"

#include <algorithm>

#include "base/try.h"

namespace kvlens {
namespace {

std::vector<std::size_t> shape_of(Stage stage, const Config& config, std::size_t size) {
  switch (stage) {
    case Stage::q_projection:
    case Stage::q_norm:
    case Stage::q_rope:
    case Stage::head_outputs:
      return {config.n_heads, config.head_dim};
    case Stage::k_projection:
    case Stage::v_projection:
    case Stage::k_norm:
    case Stage::k_rope:
      return {config.n_kv_heads, config.head_dim};
    case Stage::attention_weights:
      return {config.n_heads, size / config.n_heads};
    default:
      return {size};
  }
}

}  // namespace

template <class T>
EvidenceRecorder<T>::EvidenceRecorder(const Config& config, Capture capture,
                                      std::vector<std::size_t> layers)
    : config_(config), capture_(capture), layers_(std::move(layers)) {}

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
  records_.push_back({.site = site,
                      .shape = shape_of(site.stage, config_, values.size()),
                      .values = std::move(copy)});
  return {};
}

template class EvidenceRecorder<float>;
template class EvidenceRecorder<double>;

}  // namespace kvlens
