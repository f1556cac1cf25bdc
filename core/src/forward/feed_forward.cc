#include "forward/feed_forward.h"

#include <span>

#include "base/parallel.h"
#include "forward/products.h"
#include "ops/row_ops.h"

namespace kvlens {

template <class T>
Result<void> feed_forward_rows(const ForwardPass<T>& pass, const Config& config,
                               const BoundFeedForward<T>& weights, std::size_t layer,
                               const RowRange& rows) {
  Workspace<T>& ws = pass.workspace;
  pass.work.multiply_adds_ffn +=
      multiply_rows<T>(pass, ws.normed.data(), rows.n_rows,
                       {{weights.gate_proj, ws.gate.data()}, {weights.up_proj, ws.up.data()}});
  KVLENS_CHECK(pass.show(Stage::ffn_gate, layer, rows, ws.gate.data(), config.d_ff));
  KVLENS_CHECK(pass.show(Stage::ffn_up, layer, rows, ws.up.data(), config.d_ff));
  const std::size_t n_values = rows.n_rows * config.d_ff;
  run_ranges(pass.pool, n_values, 4, n_values * multiply_adds_per_value,
             [&](const IndexRange& values) {
               const std::size_t size = values.end - values.begin;
               const std::span<T> gate(ws.gate.data() + values.begin, size);
               ops::swiglu(std::span<const T>(gate),
                           std::span<const T>(ws.up.data() + values.begin, size), gate);
             });
  KVLENS_CHECK(pass.show(Stage::ffn_activation, layer, rows, ws.gate.data(), config.d_ff));

  pass.work.multiply_adds_ffn +=
      multiply_rows<T>(pass, ws.gate.data(), rows.n_rows, {{weights.down_proj, ws.branch.data()}});
  return pass.show(Stage::ffn_output, layer, rows, ws.branch.data(), config.d_model);
}

#define KVLENS_INSTANTIATE(T)                                                         \
  template Result<void> feed_forward_rows<T>(const ForwardPass<T>&, const Config&,    \
                                             const BoundFeedForward<T>&, std::size_t, \
                                             const RowRange&);
KVLENS_INSTANTIATE(float)
KVLENS_INSTANTIATE(double)
#undef KVLENS_INSTANTIATE

}  // namespace kvlens
