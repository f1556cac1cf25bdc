// The properties that a model and a cache must share before a session may bind them.
#pragma once

#include "kvlens/config.h"
#include "kvlens/error.h"
#include "kvlens/kv_cache.h"
#include "kvlens/model.h"

namespace kvlens {

// Whether the model's parameters are the ones that the cache was made for, unchanged since.
// Errors: parameter_count_mismatch, parameter_identity_mismatch, parameter_revision_mismatch.
template <class T>
[[nodiscard]] Result<void> check_parameters(const Model& model, const KvCache<T>& cache);

// Whether one layer's cache has the heads, the positions and the RoPE of `config`.
// Errors: layer_geometry_mismatch, layer_rope_mismatch.
[[nodiscard]] Result<void> check_geometry(const Config& config, std::size_t layer,
                                          const LayerGeometry& geometry);

// Whether the cache has a layer for each of the model's, all with the same rows and storage. Layers
// can differ because KvCache::adopt takes them from anywhere and KvCache::layers lets a caller
// write one of them alone. Errors: layer_count_mismatch, incoherent_lengths, layer_batch_mismatch,
// layer_capacity_mismatch, layer_geometry_mismatch, layer_rope_mismatch.
template <class T>
[[nodiscard]] Result<void> check_layers(const Config& config, const KvCache<T>& cache);

}  // namespace kvlens
