// A stage tap that copies what it is asked for.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kvlens/config.h"
#include "kvlens/memory.h"
#include "kvlens/stage.h"

namespace kvlens {

enum class Capture : std::uint8_t {
  none,
  attention,  // attention_weights only
  all,        // every stage
};

// Copies rows while a call runs. Memory is had as rows arrive; a failed allocation fails the call.
template <class T>
class EvidenceRecorder final : public StageTap<T> {
 public:
  struct Record {
    StageSite site;
    std::vector<std::size_t> shape;  // as in stage.h, for example [n_heads, position + 1]
    Buffer<T> values;
  };

  // `layers` empty: every layer.
  EvidenceRecorder(const Config& config, Capture capture, std::vector<std::size_t> layers = {});

  [[nodiscard]] bool wants(Stage stage, std::size_t layer) const noexcept override;
  [[nodiscard]] Result<void> at(const StageSite& site, std::span<T> values) override;

  [[nodiscard]] std::span<const Record> records() const noexcept { return records_; }
  void clear() noexcept { records_.clear(); }

 private:
  Config config_;
  Capture capture_;
  std::vector<std::size_t> layers_;
  std::vector<Record> records_;
};

extern template class EvidenceRecorder<float>;
extern template class EvidenceRecorder<double>;

}  // namespace kvlens
