// A complete-prefix forward in steps: what Session::replay runs at once, for progress and abort.
//
// It computes into memory of its own and reads the model through the session that began it, which
// must outlive it. The session's cache, counters and logits are never touched, so giving a replay
// up is destroying it. Threading: as the session, one caller at a time over both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kvlens/dtype.h"
#include "kvlens/error.h"
#include "kvlens/memory.h"
#include "kvlens/stage.h"
#include "kvlens/thread_pool.h"
#include "kvlens/work.h"

namespace kvlens {

template <class T>
struct BoundModel;
template <class T>
class Session;

template <class T>
struct Replay {
  Buffer<T>
      logits;  // [vocab_size] of the last position, or [n_tokens, vocab_size] when all were asked
  Work work;
};

template <class T>
class StepwiseReplay {
 public:
  StepwiseReplay(StepwiseReplay&&) noexcept;
  StepwiseReplay& operator=(StepwiseReplay&&) noexcept;
  ~StepwiseReplay();

  // Steps of the whole: up to chunk_rows rows through the embedding, through one layer, or through
  // the vocabulary head.
  [[nodiscard]] std::size_t n_steps() const noexcept;
  // Computes one step, if any is left; returns how many are left then. Errors: no_call_in_progress
  // (the replay has ended), and the forward pass's, which end it.
  [[nodiscard]] Result<std::size_t> advance(StageTap<T>* tap = nullptr);
  // Computes what is left and ends the replay. Errors: as advance.
  [[nodiscard]] Result<Replay<T>> finish(StageTap<T>* tap = nullptr);

 private:
  friend class Session<T>;
  struct State;
  explicit StepwiseReplay(std::unique_ptr<State> state);
  // `tokens` have been checked. Errors: size_overflow, out_of_memory.
  [[nodiscard]] static Result<StepwiseReplay> begin(const BoundModel<T>& model,
                                                    std::span<const std::uint32_t> tokens,
                                                    bool all_logits, DType kv_dtype,
                                                    std::size_t chunk_rows, ThreadPool* pool);

  std::unique_ptr<State> state_;  // null once it has ended
};

extern template class StepwiseReplay<float>;
extern template class StepwiseReplay<double>;

}  // namespace kvlens
