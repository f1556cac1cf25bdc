// A session: one model bound to one cache. The decoder's calls, all or nothing.
//
// Every call that fails leaves length, rows, tokens, phase, counters and the last logits as they
// were. Every call that succeeds gives the same bits whatever the chunk size, the thread count, or
// the way a prompt is split into prefill, extend and decode; `replay`, which uses no cache, gives
// them too. Threading: one caller at a time; the session spreads its own work over its pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kvlens/error.h"
#include "kvlens/kv_cache.h"
#include "kvlens/model.h"
#include "kvlens/replay.h"
#include "kvlens/savepoint.h"
#include "kvlens/stage.h"
#include "kvlens/thread_pool.h"
#include "kvlens/work.h"

namespace kvlens {

struct SessionOptions {
  std::size_t chunk_rows = 64;            // rows advanced together; 1 is the serial path
  std::shared_ptr<ThreadPool> pool = {};  // null: the calling thread alone
};

// What one call did. `logits` ([vocab_size], after the last row) are valid until the next call.
template <class T>
struct Step {
  std::span<const T> logits;
  std::size_t position;  // of the last row
  std::size_t kv_len_before;
  std::size_t kv_len;
  std::uint64_t row_attention_score_values;  // of the last row alone
  Work work;                                 // of this call alone
};

template <class T>
class Session {
 public:
  // Checks the whole relationship once. Errors, in this order: invalid_argument (chunk_rows 0),
  // config_mismatch, parameter_count_mismatch, parameter_identity_mismatch,
  // parameter_revision_mismatch, layer_count_mismatch, incoherent_lengths, layer_batch_mismatch,
  // layer_capacity_mismatch, layer_geometry_mismatch, layer_rope_mismatch, out_of_memory.
  // Nothing is borrowed after an error.
  [[nodiscard]] static Result<std::unique_ptr<Session>> bind(std::shared_ptr<Model> model,
                                                             std::shared_ptr<KvCache<T>> cache,
                                                             const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // On an empty cache. Errors: call_in_progress, cache_changed, not_empty, empty_prompt,
  // prompt_exceeds_capacity, token_out_of_range, out_of_memory (only while a savepoint is alive),
  // and what the forward pass can meet (non_finite_value, interrupted, cache_changed,
  // work_overflow).
  [[nodiscard]] Result<Step<T>> prefill(std::span<const std::uint32_t> tokens,
                                        StageTap<T>* tap = nullptr);
  // One token onto a filled cache. Errors: call_in_progress, not_prefilled, token_out_of_range,
  // cache_full, out_of_memory (as prefill), and the forward pass's.
  [[nodiscard]] Result<Step<T>> decode(std::uint32_t token, StageTap<T>* tap = nullptr);
  // Several tokens onto a filled cache; they count as decode tokens. Errors: as decode,
  // empty_prompt.
  [[nodiscard]] Result<Step<T>> extend(std::span<const std::uint32_t> tokens,
                                       StageTap<T>* tap = nullptr);

  // The same calls in steps, for progress and abort: begin checks everything, advance computes up
  // to chunk_rows further rows as scratch, finish computes the logits and commits. Dropping the
  // call with `abandon` at any point leaves no trace. While a call is open every other call on the
  // cache fails with call_in_progress. An error of advance or finish abandons the call.
  enum class Phase : std::uint8_t { prefill, extend };
  [[nodiscard]] Result<void> begin(Phase phase, std::span<const std::uint32_t> tokens);
  // Rows still to go. Errors: no_call_in_progress, and the forward pass's.
  [[nodiscard]] Result<std::size_t> advance(StageTap<T>* tap = nullptr);
  // Computes any rows still to go first. Errors: no_call_in_progress, and the forward pass's.
  [[nodiscard]] Result<Step<T>> finish(StageTap<T>* tap = nullptr);
  void abandon() noexcept;
  [[nodiscard]] bool call_in_progress() const noexcept;

  // Complete-prefix forward over `tokens` from nothing, without the cache and without touching it.
  // Memory: one layer's keys and values and the residual stream for all tokens, freed on return.
  // Errors: call_in_progress, empty_prompt, prompt_exceeds_capacity (max_seq_len here),
  // token_out_of_range, out_of_memory, and the forward pass's.
  [[nodiscard]] Result<Replay<T>> replay(std::span<const std::uint32_t> tokens,
                                         bool all_logits = false, StageTap<T>* tap = nullptr) const;
  // The same in steps; the session must outlive what it returns. Calls made meanwhile are no part
  // of it. Errors: as replay, without the forward pass's.
  [[nodiscard]] Result<StepwiseReplay<T>> begin_replay(std::span<const std::uint32_t> tokens,
                                                       bool all_logits = false) const;

  // Keeps the first `len` rows (1..kv_len); touches no counter. Logits are then gone until the next
  // call. Errors: call_in_progress, invalid_length.
  [[nodiscard]] Result<void> truncate(std::size_t len);
  // Drops every row and the logits, and abandons an open call; touches no counter. The allocation
  // and its bytes stay.
  void clear() noexcept;
  // `clear`, and all counters are zero: the session is as freshly bound to an empty cache.
  void reset() noexcept;

  // Marks the present state as one to return to. It takes memory for the logits and token ids;
  // savepoint.h says what else it may take later. While a savepoint is alive, a call that writes
  // over rows of then can fail with out_of_memory before it begins. Errors: call_in_progress,
  // cache_changed, out_of_memory.
  [[nodiscard]] Result<Savepoint<T>> savepoint();
  // Returns to `savepoint`, which stays alive: rows, tokens, logits and counters are what they
  // were, byte for byte. An open call of this session is abandoned. Allocates nothing. Errors:
  // invalid_argument (another session's savepoint), call_in_progress (of another session on the
  // cache), savepoint_ended, cache_changed; nothing has changed then.
  [[nodiscard]] Result<void> rollback(const Savepoint<T>& savepoint);

  [[nodiscard]] const Work& work() const noexcept;
  [[nodiscard]] std::size_t kv_len() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept;
  [[nodiscard]] std::span<const std::uint32_t> tokens() const noexcept;
  // After the last row, [vocab_size]; empty when no call has succeeded since bind, reset or
  // truncate.
  [[nodiscard]] std::span<const T> logits() const noexcept;
  [[nodiscard]] const std::shared_ptr<Model>& model() const noexcept;
  [[nodiscard]] const std::shared_ptr<KvCache<T>>& cache() const noexcept;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

extern template class Session<float>;
extern template class Session<double>;

}  // namespace kvlens
