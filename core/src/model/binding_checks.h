// What a model and a cache must have in common before a session may bind them.
#pragma once

#include "kvlens/config.h"
#include "kvlens/error.h"
#include "kvlens/kv_cache.h"
#include "kvlens/model.h"

namespace kvlens {

// Errors: parameter_count_mismatch, parameter_identity_mismatch, parameter_revision_mismatch.
template <class T>
[[nodiscard]] Result<void> check_parameters(const Model& model, const KvCache<T>& cache);

// Errors: layer_count_mismatch, incoherent_lengths, layer_batch_mismatch, layer_capacity_mismatch,
// layer_geometry_mismatch, layer_rope_mismatch.
template <class T>
[[nodiscard]] Result<void> check_layers(const Config& config, const KvCache<T>& cache);

}  // namespace kvlens
