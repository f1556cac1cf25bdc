// The feed-forward part of one layer over consecutive rows (SwiGLU: Shazeer 2020,
// arXiv:2002.05202).
#pragma once

#include <cstddef>

#include "forward/forward_pass.h"
#include "model/bound_model.h"

namespace kvlens {

// Reads workspace.normed and writes workspace.branch, both [n_rows, d_model]. Errors: the tap's.
template <class T>
[[nodiscard]] Result<void> feed_forward_rows(const ForwardPass<T>& pass, const Config& config,
                                             const BoundFeedForward<T>& weights, std::size_t layer,
                                             const RowRange& rows);

}  // namespace kvlens
