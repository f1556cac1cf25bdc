#include "model/binding_checks.h"

#include <bit>
#include <string>
#include <string_view>

#include "base/try.h"

namespace kvlens {
namespace {

std::unexpected<Error> layer_mismatch(ErrorCode code, std::size_t layer, std::string_view what,
                                      std::uint64_t expected, std::uint64_t actual) {
  return fail(code, LayerMismatchContext{layer, expected, actual},
              "cache of layer " + std::to_string(layer) + " has " + std::string(what) + " " +
                  std::to_string(actual) + ", expected " + std::to_string(expected));
}

}  // namespace

template <class T>
Result<void> check_parameters(const Model& model, const KvCache<T>& cache) {
  const auto parameters = model.parameters();
  const auto captured = cache.captured();
  if (captured.size() != parameters.size()) {
    return fail(ErrorCode::parameter_count_mismatch,
                MismatchContext{captured.size(), parameters.size()},
                "cache was made for " + std::to_string(captured.size()) +
                    " parameters, the model has " + std::to_string(parameters.size()));
  }
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const Parameter& parameter = parameters[index];
    if (captured[index].identity != parameter.identity) {
      return fail(ErrorCode::parameter_identity_mismatch,
                  IdentityContext{index, parameter.spec.name},
                  "parameter " + std::to_string(index) + " (" + parameter.spec.name +
                      ") is not the one that the cache was made for");
    }
    if (captured[index].revision != parameter.revision) {
      return fail(
          ErrorCode::parameter_revision_mismatch,
          RevisionContext{index, parameter.spec.name, captured[index].revision, parameter.revision},
          "parameter " + std::to_string(index) + " (" + parameter.spec.name + ") has revision " +
              std::to_string(parameter.revision) + ", the cache was made for revision " +
              std::to_string(captured[index].revision));
    }
  }
  return {};
}

Result<void> check_geometry(const Config& config, std::size_t layer,
                            const LayerGeometry& geometry) {
  if (geometry.n_kv_heads != config.n_kv_heads) {
    return layer_mismatch(ErrorCode::layer_geometry_mismatch, layer, "n_kv_heads",
                          config.n_kv_heads, geometry.n_kv_heads);
  }
  if (geometry.head_dim != config.head_dim) {
    return layer_mismatch(ErrorCode::layer_geometry_mismatch, layer, "head_dim", config.head_dim,
                          geometry.head_dim);
  }
  if (geometry.max_seq_len != config.max_seq_len) {
    return layer_mismatch(ErrorCode::layer_geometry_mismatch, layer, "max_seq_len",
                          config.max_seq_len, geometry.max_seq_len);
  }
  if (!geometry.rope.same_bits(config.rope)) {
    return fail(ErrorCode::layer_rope_mismatch,
                LayerMismatchContext{layer, std::bit_cast<std::uint64_t>(config.rope.theta),
                                     std::bit_cast<std::uint64_t>(geometry.rope.theta)},
                "cache of layer " + std::to_string(layer) +
                    " holds keys rotated with another RoPE (theta " +
                    std::to_string(geometry.rope.theta) + ", the model's is " +
                    std::to_string(config.rope.theta) + ")");
  }
  return {};
}

template <class T>
Result<void> check_layers(const Config& config, const KvCache<T>& cache) {
  const auto layers = cache.layers();
  if (layers.size() != config.n_layers) {
    return fail(ErrorCode::layer_count_mismatch, MismatchContext{config.n_layers, layers.size()},
                "cache has " + std::to_string(layers.size()) + " layers, the model has " +
                    std::to_string(config.n_layers));
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer].len() != cache.len()) {
      return layer_mismatch(ErrorCode::incoherent_lengths, layer, "length", cache.len(),
                            layers[layer].len());
    }
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerGeometry& geometry = layers[layer].geometry();
    if (geometry.batch != 1) {
      return layer_mismatch(ErrorCode::layer_batch_mismatch, layer, "batch", 1, geometry.batch);
    }
    if (geometry.capacity != cache.capacity()) {
      return layer_mismatch(ErrorCode::layer_capacity_mismatch, layer, "capacity", cache.capacity(),
                            geometry.capacity);
    }
    if (layers[layer].dtype() != cache.dtype()) {
      const DType expected = cache.dtype();
      const DType actual = layers[layer].dtype();
      return fail(ErrorCode::layer_geometry_mismatch,
                  LayerMismatchContext{layer, static_cast<std::uint64_t>(expected),
                                       static_cast<std::uint64_t>(actual)},
                  "cache of layer " + std::to_string(layer) + " stores " +
                      std::string(dtype_info(actual).name) + ", expected " +
                      std::string(dtype_info(expected).name) + " as the first layer's");
    }
    KVLENS_CHECK(check_geometry(config, layer, geometry));
  }
  return {};
}

template Result<void> check_parameters<float>(const Model&, const KvCache<float>&);
template Result<void> check_parameters<double>(const Model&, const KvCache<double>&);
template Result<void> check_layers<float>(const Config&, const KvCache<float>&);
template Result<void> check_layers<double>(const Config&, const KvCache<double>&);

}  // namespace kvlens
