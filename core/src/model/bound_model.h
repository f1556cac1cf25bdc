// A model's parameters as the forward pass reads them: matrices in place, vectors converted to the
// compute type. Made once when a session is bound; the model must outlive it.
#pragma once

#include <cstddef>
#include <vector>

#include "kvlens/memory.h"
#include "kvlens/model.h"
#include "ops/matrix.h"

namespace kvlens {

template <class T>
struct BoundAttention {
  ops::MatrixView q_proj, k_proj, v_proj, o_proj;
  Buffer<T> q_bias, k_bias, v_bias;  // empty without bias
  Buffer<T> q_norm, k_norm;          // [head_dim], empty without qk_norm
};

template <class T>
struct BoundFeedForward {
  ops::MatrixView gate_proj, up_proj, down_proj;
};

template <class T>
struct BoundLayer {
  Buffer<T> attention_norm;  // [d_model]
  BoundAttention<T> attention;
  Buffer<T> ffn_norm;  // [d_model]
  BoundFeedForward<T> feed_forward;
};

template <class T>
struct BoundModel {
  const Config* config;
  ops::MatrixView token_embedding;
  std::vector<BoundLayer<T>> layers;
  Buffer<T> final_norm;  // [d_model]
  ops::MatrixView head;  // lm_head, or the token embedding when tied

  // Errors: out_of_memory.
  [[nodiscard]] static Result<BoundModel> create(const Model& model);
};

// Attention of one layer alone. Errors: out_of_memory.
template <class T>
[[nodiscard]] Result<BoundAttention<T>> bind_attention(const Model& model, std::size_t layer);

extern template struct BoundModel<float>;
extern template struct BoundModel<double>;

}  // namespace kvlens
