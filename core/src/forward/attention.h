// Attention of one layer over consecutive rows of one lane: the one implementation behind prefill,
// decode, replay and the checked one-layer entry.
#pragma once

#include <cstddef>

#include "forward/forward_pass.h"
#include "kvlens/kv_cache.h"
#include "model/bound_model.h"
#include "ops/rope.h"

namespace kvlens {

template <class T>
struct AttentionLayer {
  const Config& config;
  const BoundAttention<T>& weights;
  const ops::RopeTable<T>& rope;
  std::size_t index;  // of the layer
};

// Reads workspace.normed, writes workspace.branch; prepares the rows' keys and values as scratch of
// `cache` (row position - len) and commits nothing. Errors: non_finite_value, cache_full, and the
// tap's; rows of the cache before its len are unchanged.
template <class T>
[[nodiscard]] Result<void> attention_rows(const ForwardPass<T>& pass,
                                          const AttentionLayer<T>& layer, const RowRange& rows,
                                          LayerKvCache<T>& cache, std::size_t lane);

}  // namespace kvlens
