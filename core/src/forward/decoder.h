// The decoder's forward pass over rows, layer by layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "forward/forward_pass.h"
#include "kvlens/kv_cache.h"
#include "model/bound_model.h"
#include "ops/rope.h"

namespace kvlens {

// Token embeddings of the rows into `residual`, [n_rows, d_model].
// Errors: the tap's.
template <class T>
[[nodiscard]] Result<void> embed_rows(const ForwardPass<T>& pass, const BoundModel<T>& model,
                                      std::span<const std::uint32_t> tokens, const RowRange& rows,
                                      T* residual);

// One layer: adds attention and feed-forward to `residual`, [n_rows, d_model], and prepares the
// rows' keys and values as scratch of `cache`. Errors: non_finite_value, cache_full, the tap's;
// wrapped with "decoder layer N".
template <class T>
[[nodiscard]] Result<void> layer_rows(const ForwardPass<T>& pass, const BoundModel<T>& model,
                                      const ops::RopeTable<T>& rope, std::size_t layer,
                                      const RowRange& rows, LayerKvCache<T>& cache, T* residual);

// Final norm and vocabulary head of the rows of `residual` into `logits`, [n_rows, vocab_size].
// Errors: non_finite_value, the tap's.
template <class T>
[[nodiscard]] Result<void> logits_rows(const ForwardPass<T>& pass, const BoundModel<T>& model,
                                       const RowRange& rows, const T* residual, T* logits);

}  // namespace kvlens
