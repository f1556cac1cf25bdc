// A stage tap that keeps copies of the rows it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kvlens/memory.h"
#include "kvlens/stage.h"

namespace kvlens {

// Which stages a recorder copies.
enum class Capture : std::uint8_t {
  none,
  attention,  // attention_weights only
  all,        // every stage
};

// Copies rows while a call runs. It allocates memory as rows arrive; a failed allocation fails the
// call with out_of_memory. Records of a call that fails stay until `clear`.
template <class T>
class EvidenceRecorder final : public StageTap<T> {
 public:
  struct Record {
    StageSite site;
    Buffer<T> values;  // of the shape that stage.h gives for site.stage
  };

  // Records the stages of `layers`, or of every layer if there are none. Stages outside the layers
  // (embedding, final_norm, logits) are recorded either way.
  explicit EvidenceRecorder(Capture capture, std::vector<std::size_t> layers = {});

  [[nodiscard]] bool wants(Stage stage, std::size_t layer) const noexcept override;
  [[nodiscard]] Result<void> at(const StageSite& site, std::span<T> values) override;

  // All records since construction or `clear`, in the order of the computation.
  [[nodiscard]] std::span<const Record> records() const noexcept { return records_; }
  void clear() noexcept { records_.clear(); }

 private:
  Capture capture_;
  std::vector<std::size_t> layers_;
  std::vector<Record> records_;
};

extern template class EvidenceRecorder<float>;
extern template class EvidenceRecorder<double>;

}  // namespace kvlens
