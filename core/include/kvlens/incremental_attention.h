// One layer of incremental attention, as a checked entry of its own. The decoder runs the same
// implementation on parameters it has checked when it was bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kvlens/error.h"
#include "kvlens/kv_cache.h"
#include "kvlens/memory.h"
#include "kvlens/model.h"
#include "kvlens/stage.h"

namespace kvlens {

// A dense row-major tensor somebody else owns.
template <class T>
struct TensorView {
  std::span<const T> values;
  std::vector<std::size_t> shape;
};

// What one step computed, each tensor owned. B = batch, L = length after the step.
template <class T>
struct AttentionStep {
  std::size_t batch;
  std::size_t len;                 // L
  Buffer<T> projected_q;           // [B, n_heads, 1, head_dim]
  Buffer<T> projected_k;           // [B, n_kv_heads, 1, head_dim]
  Buffer<T> projected_v;           // [B, n_kv_heads, 1, head_dim]
  Buffer<T> rotated_q;             // [B, n_heads, 1, head_dim]
  Buffer<T> rotated_k;             // [B, n_kv_heads, 1, head_dim]
  Buffer<T> weights;               // [B, n_heads, 1, L]
  Buffer<T> head_outputs;          // [B, n_heads, 1, head_dim]
  Buffer<T> merged;                // [B, 1, n_heads * head_dim]
  Buffer<T> output;                // [B, 1, d_model]
  std::uint64_t full_prefix_rows;  // q, k and v rows that a complete prefix would project: 3 B L
  std::uint64_t incremental_rows;  // q, k and v rows projected: 3 B
  std::uint64_t reused_rows;       // key and value rows read from the cache: 2 B (L - 1)
};

template <class T>
class IncrementalAttention {
 public:
  // Attention of layer `layer` of `model`, which it borrows. `capacity` bounds the caches it can
  // step. Errors: invalid_argument (layer), zero_capacity, capacity_exceeds_max_seq_len,
  // out_of_memory.
  [[nodiscard]] static Result<IncrementalAttention> create(std::shared_ptr<Model> model,
                                                           std::size_t layer, std::size_t capacity);
  IncrementalAttention(IncrementalAttention&&) noexcept;
  IncrementalAttention& operator=(IncrementalAttention&&) noexcept;
  ~IncrementalAttention();

  // `hidden` is [batch, 1, d_model], already normalised. The row is appended to every lane of
  // `cache` only after everything up to the output projection has succeeded. `tap`, when given, is
  // called for each lane at the stages from q_projection to attention_output. Errors:
  // rank_mismatch, not_a_single_token, batch_mismatch, width_mismatch, layer_geometry_mismatch,
  // layer_rope_mismatch, cache_full, non_finite_value, out_of_memory, interrupted; the cache is
  // unchanged.
  [[nodiscard]] Result<AttentionStep<T>> step(const TensorView<T>& hidden, LayerKvCache<T>& cache,
                                              StageTap<T>* tap = nullptr);

 private:
  struct State;
  explicit IncrementalAttention(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

extern template class IncrementalAttention<float>;
extern template class IncrementalAttention<double>;

}  // namespace kvlens
