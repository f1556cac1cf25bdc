#include "forward/decoder.h"

#include <string>

#include "base/parallel.h"
#include "forward/attention.h"
#include "forward/feed_forward.h"
#include "forward/products.h"
#include "ops/packing.h"
#include "ops/row_ops.h"

namespace kvlens {
namespace {

template <class T>
void norm_rows(const ForwardPass<T>& pass, const Buffer<T>& gain, T eps, std::size_t n_rows,
               const T* x, T* out) {
  const std::size_t width = gain.size();
  run_rows(pass.pool, n_rows, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      ops::rms_norm(std::span<const T>(x + row * width, width), gain.span(), eps,
                    std::span<T>(out + row * width, width));
    }
  });
}

template <class T>
void add_rows(const ForwardPass<T>& pass, std::size_t n_rows, std::size_t width, T* x, const T* y) {
  run_rows(pass.pool, n_rows, width, [&](std::size_t begin, std::size_t end) {
    const std::size_t size = (end - begin) * width;
    ops::add(std::span<T>(x + begin * width, size), std::span<const T>(y + begin * width, size));
  });
}

std::string layer_name(std::size_t layer) { return "decoder layer " + std::to_string(layer); }

}  // namespace

template <class T>
Result<void> embed_rows(const ForwardPass<T>& pass, const BoundModel<T>& model,
                        std::span<const std::uint32_t> tokens, const RowRange& rows, T* residual) {
  const std::size_t width = model.config->d_model;
  for (std::size_t row = 0; row < rows.n_rows; ++row) {
    ops::dequantise_row(model.token_embedding, tokens[row],
                        std::span<T>(residual + row * width, width));
  }
  return pass.show(Stage::embedding, 0, rows, residual, width);
}

template <class T>
Result<void> layer_rows(const ForwardPass<T>& pass, const BoundModel<T>& model,
                        const ops::RopeTable<T>& rope, std::size_t layer, const RowRange& rows,
                        LayerKvCache<T>& cache, T* residual) {
  const Config& config = *model.config;
  const BoundLayer<T>& weights = model.layers[layer];
  Workspace<T>& ws = pass.workspace;
  const T eps = static_cast<T>(config.rms_norm_eps);
  const auto in_layer = [layer](Result<void> result, std::string_view part) -> Result<void> {
    if (result) [[likely]]
      return result;
    return wrap(std::move(result).error(), layer_name(layer) + ": " + std::string(part));
  };

  norm_rows(pass, weights.attention_norm, eps, rows.n_rows, residual, ws.normed.data());
  KVLENS_CHECK(
      in_layer(pass.show(Stage::attention_norm, layer, rows, ws.normed.data(), config.d_model),
               "attention norm"));
  KVLENS_CHECK(
      in_layer(attention_rows(pass, {config, weights.attention, rope, layer}, rows, cache, 0),
               "incremental attention"));
  add_rows(pass, rows.n_rows, config.d_model, residual, ws.branch.data());
  KVLENS_CHECK(in_layer(pass.show(Stage::attention_residual, layer, rows, residual, config.d_model),
                        "attention residual"));

  norm_rows(pass, weights.ffn_norm, eps, rows.n_rows, residual, ws.normed.data());
  KVLENS_CHECK(in_layer(pass.show(Stage::ffn_norm, layer, rows, ws.normed.data(), config.d_model),
                        "feed-forward norm"));
  KVLENS_CHECK(
      in_layer(feed_forward_rows(pass, config, weights.feed_forward, layer, rows), "feed-forward"));
  add_rows(pass, rows.n_rows, config.d_model, residual, ws.branch.data());
  KVLENS_CHECK(in_layer(pass.show(Stage::ffn_residual, layer, rows, residual, config.d_model),
                        "feed-forward residual"));
  return in_layer(
      check_finite_rows(Stage::ffn_residual, layer, rows, residual, config.d_model, "residual"),
      "feed-forward");
}

template <class T>
Result<void> logits_rows(const ForwardPass<T>& pass, const BoundModel<T>& model,
                         const RowRange& rows, const T* residual, T* logits) {
  const Config& config = *model.config;
  Workspace<T>& ws = pass.workspace;
  norm_rows(pass, model.final_norm, static_cast<T>(config.rms_norm_eps), rows.n_rows, residual,
            ws.normed.data());
  KVLENS_CHECK_AT(
      pass.show(Stage::final_norm, config.n_layers, rows, ws.normed.data(), config.d_model),
      "final norm", std::nullopt);
  pass.work.multiply_adds_logits +=
      multiply_rows<T>(pass, ws.normed.data(), rows.n_rows, {{model.head, logits}});
  KVLENS_CHECK_AT(pass.show(Stage::logits, config.n_layers, rows, logits, config.vocab_size),
                  "vocabulary head", std::nullopt);
  return check_finite_rows(Stage::logits, config.n_layers, rows, logits, config.vocab_size,
                           "vocabulary head");
}

#define KVLENS_INSTANTIATE(T)                                                                 \
  template Result<void> embed_rows<T>(const ForwardPass<T>&, const BoundModel<T>&,            \
                                      std::span<const std::uint32_t>, const RowRange&, T*);   \
  template Result<void> layer_rows<T>(const ForwardPass<T>&, const BoundModel<T>&,            \
                                      const ops::RopeTable<T>&, std::size_t, const RowRange&, \
                                      LayerKvCache<T>&, T*);                                  \
  template Result<void> logits_rows<T>(const ForwardPass<T>&, const BoundModel<T>&,           \
                                       const RowRange&, const T*, T*);
KVLENS_INSTANTIATE(float)
KVLENS_INSTANTIATE(double)
#undef KVLENS_INSTANTIATE

}  // namespace kvlens
