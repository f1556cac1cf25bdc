#include "forward/workspace.h"

#include <algorithm>

#include "base/try.h"
#include "ops/attend.h"

namespace kvlens {

template <class T>
Result<Workspace<T>> Workspace<T>::create(const Config& config, std::size_t max_rows,
                                          std::size_t max_len, std::size_t n_threads) {
  const auto rows_of = [max_rows](std::size_t width) {
    return Buffer<T>::uninitialised({max_rows, width});
  };
  Workspace workspace;
  KVLENS_TRY(workspace.residual, rows_of(config.d_model));
  KVLENS_TRY(workspace.normed, rows_of(config.d_model));
  KVLENS_TRY(workspace.branch, rows_of(config.d_model));
  KVLENS_TRY(workspace.q, rows_of(config.q_width()));
  KVLENS_TRY(workspace.k, rows_of(config.kv_width()));
  KVLENS_TRY(workspace.v, rows_of(config.kv_width()));
  KVLENS_TRY(workspace.heads, rows_of(config.q_width()));
  KVLENS_TRY(workspace.weights, Buffer<T>::uninitialised({config.n_heads, max_len}));
  KVLENS_TRY(workspace.gate, rows_of(config.d_ff));
  KVLENS_TRY(workspace.up, rows_of(config.d_ff));
  KVLENS_TRY(workspace.scratch_per_thread,
             ops::attend_scratch<T>(max_rows, config.group_size(), max_len));
  KVLENS_TRY(workspace.scratch,
             Buffer<T>::uninitialised({n_threads, workspace.scratch_per_thread}));
  KVLENS_TRY(workspace.input,
             ops::LinearInput<T>::create(
                 max_rows, std::max({config.d_model, config.d_ff, config.q_width()})));
  return workspace;
}

template struct Workspace<float>;
template struct Workspace<double>;

}  // namespace kvlens
