#include "forward/feed_forward.h"

#include <atomic>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "ops/linear.h"
#include "ops/row_ops.h"

namespace kvlens {

template <class T>
Result<void> feed_forward_rows(const ForwardPass<T>& pass, const Config& config,
                               const BoundFeedForward<T>& weights, std::size_t layer,
                               const RowRange& rows) {
  Workspace<T>& ws = pass.workspace;
  pass.set_input(ws.normed.data(), rows.n_rows, config.d_model,
                 is_quantised(weights.gate_proj.dtype) || is_quantised(weights.up_proj.dtype));
  std::atomic<std::uint64_t> multiply_adds{0};
  run_parts(pass.pool, [&](std::size_t part, std::size_t n_parts) {
    const IndexRange outputs = part_of(config.d_ff, ops::row_granularity, part, n_parts);
    multiply_adds +=
        ops::linear(weights.gate_proj, ws.input, outputs.begin, outputs.end, ws.gate.data()) +
        ops::linear(weights.up_proj, ws.input, outputs.begin, outputs.end, ws.up.data());
  });
  KVLENS_CHECK(pass.show(Stage::ffn_gate, layer, rows, ws.gate.data(), config.d_ff));
  KVLENS_CHECK(pass.show(Stage::ffn_up, layer, rows, ws.up.data(), config.d_ff));
  run_parts(pass.pool, [&](std::size_t part, std::size_t n_parts) {
    const IndexRange values = part_of(rows.n_rows * config.d_ff, 4, part, n_parts);
    const std::size_t size = values.end - values.begin;
    const std::span<T> gate(ws.gate.data() + values.begin, size);
    ops::swiglu(std::span<const T>(gate), std::span<const T>(ws.up.data() + values.begin, size),
                gate);
  });
  KVLENS_CHECK(pass.show(Stage::ffn_activation, layer, rows, ws.gate.data(), config.d_ff));

  pass.set_input(ws.gate.data(), rows.n_rows, config.d_ff, is_quantised(weights.down_proj.dtype));
  run_parts(pass.pool, [&](std::size_t part, std::size_t n_parts) {
    const IndexRange outputs = part_of(config.d_model, ops::row_granularity, part, n_parts);
    multiply_adds +=
        ops::linear(weights.down_proj, ws.input, outputs.begin, outputs.end, ws.branch.data());
  });
  pass.work.multiply_adds_ffn += multiply_adds;
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
