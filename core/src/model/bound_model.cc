#include "model/bound_model.h"

#include <string>

#include "base/try.h"
#include "ops/packing.h"

namespace kvlens {
namespace {

std::string layer_prefix(std::size_t layer) { return "layers." + std::to_string(layer) + "."; }

ops::MatrixView view(const Parameter& parameter) {
  return {.dtype = parameter.dtype,
          .layout = parameter.layout,
          .rows = parameter.spec.rows,
          .cols = parameter.spec.cols,
          .data = parameter.bytes.data()};
}

// A model that exists has every parameter that its configuration calls for.
ops::MatrixView matrix(const Model& model, const std::string& name) {
  return view(*model.find(name));
}

template <class T>
Result<Buffer<T>> vector(const Model& model, const std::string& name) {
  const Parameter& parameter = *model.find(name);
  KVLENS_TRY(auto values, Buffer<T>::uninitialised(parameter.spec.cols));
  ops::dequantise_row(view(parameter), 0, values.span());
  return values;
}

}  // namespace

template <class T>
Result<BoundAttention<T>> bind_attention(const Model& model, std::size_t layer) {
  const std::string prefix = layer_prefix(layer);
  BoundAttention<T> bound{.q_proj = matrix(model, prefix + "q_proj"),
                          .k_proj = matrix(model, prefix + "k_proj"),
                          .v_proj = matrix(model, prefix + "v_proj"),
                          .o_proj = matrix(model, prefix + "o_proj"),
                          .q_bias = {},
                          .k_bias = {},
                          .v_bias = {},
                          .q_norm = {},
                          .k_norm = {}};
  if (model.config().qkv_bias) {
    KVLENS_TRY(bound.q_bias, vector<T>(model, prefix + "q_bias"));
    KVLENS_TRY(bound.k_bias, vector<T>(model, prefix + "k_bias"));
    KVLENS_TRY(bound.v_bias, vector<T>(model, prefix + "v_bias"));
  }
  if (model.config().qk_norm) {
    KVLENS_TRY(bound.q_norm, vector<T>(model, prefix + "q_norm"));
    KVLENS_TRY(bound.k_norm, vector<T>(model, prefix + "k_norm"));
  }
  return bound;
}

template <class T>
Result<BoundModel<T>> BoundModel<T>::create(const Model& model) {
  BoundModel bound{
      .config = &model.config(),
      .token_embedding = matrix(model, "token_embedding"),
      .layers = {},
      .final_norm = {},
      .head = matrix(model, model.config().tied_embedding ? "token_embedding" : "lm_head")};
  bound.layers.reserve(model.config().n_layers);
  for (std::size_t layer = 0; layer < model.config().n_layers; ++layer) {
    const std::string prefix = layer_prefix(layer);
    BoundLayer<T>& bound_layer = bound.layers.emplace_back();
    KVLENS_TRY(bound_layer.attention_norm, vector<T>(model, prefix + "attention_norm"));
    KVLENS_TRY(bound_layer.attention, bind_attention<T>(model, layer));
    KVLENS_TRY(bound_layer.ffn_norm, vector<T>(model, prefix + "ffn_norm"));
    bound_layer.feed_forward = {.gate_proj = matrix(model, prefix + "gate_proj"),
                                .up_proj = matrix(model, prefix + "up_proj"),
                                .down_proj = matrix(model, prefix + "down_proj")};
  }
  KVLENS_TRY(bound.final_norm, vector<T>(model, "final_norm"));
  return bound;
}

template struct BoundModel<float>;
template struct BoundModel<double>;
template Result<BoundAttention<float>> bind_attention<float>(const Model&, std::size_t);
template Result<BoundAttention<double>> bind_attention<double>(const Model&, std::size_t);

}  // namespace kvlens
