#include "kvlens/replay.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/try.h"
#include "forward/decoder.h"
#include "forward/workspace.h"
#include "model/bound_model.h"

namespace kvlens {

template <class T>
struct StepwiseReplay<T>::State {
  const BoundModel<T>& model;
  ThreadPool* pool;
  std::size_t chunk;         // rows of a step
  std::size_t n_body_steps;  // chunks of all rows, through the embedding and every layer
  std::size_t n_steps;       // with those of the head
  std::size_t logits_begin;  // first position whose logits are wanted
  std::size_t n_done = 0;
  Buffer<std::uint32_t> tokens;
  Workspace<T> workspace;
  ops::RopeTable<T> rope;
  LayerKvCache<T> layer_cache;  // of the layer under way: nothing outlives its layer but `residual`
  Buffer<T> residual;           // [n_tokens, d_model]
  Replay<T> replay;

  [[nodiscard]] Result<void> step(StageTap<T>* tap) {
    const Config& config = *model.config;
    const ForwardPass<T> pass{workspace, pool, tap, replay.work, tokens.size()};
    const std::size_t n_chunks = (tokens.size() + chunk - 1) / chunk;
    const bool in_head = n_done >= n_body_steps;
    const std::size_t first =
        in_head ? logits_begin + (n_done - n_body_steps) * chunk : n_done % n_chunks * chunk;
    const RowRange rows{first, std::min(chunk, tokens.size() - first)};
    T* x = residual.data() + first * config.d_model;
    if (in_head) {
      T* out = replay.logits.data() + (first - logits_begin) * config.vocab_size;
      KVLENS_CHECK(logits_rows(pass, model, rows, x, out));
    } else if (n_done < n_chunks) {
      const std::span<const std::uint32_t> ids(tokens.data() + first, rows.n_rows);
      KVLENS_CHECK(embed_rows(pass, model, ids, rows, x));
    } else {
      const std::size_t layer = n_done / n_chunks - 1;
      KVLENS_CHECK(layer_rows(pass, model, rope, layer, rows, layer_cache, x));
      if (layer + 1 == config.n_layers) replay.work.token_forwards += rows.n_rows;
    }
    ++n_done;
    return {};
  }
};

template <class T>
StepwiseReplay<T>::StepwiseReplay(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <class T>
StepwiseReplay<T>::StepwiseReplay(StepwiseReplay&&) noexcept = default;
template <class T>
StepwiseReplay<T>& StepwiseReplay<T>::operator=(StepwiseReplay&&) noexcept = default;
template <class T>
StepwiseReplay<T>::~StepwiseReplay() = default;

template <class T>
Result<StepwiseReplay<T>> StepwiseReplay<T>::begin(const BoundModel<T>& model,
                                                   std::span<const std::uint32_t> tokens,
                                                   bool all_logits, DType kv_dtype,
                                                   std::size_t chunk_rows, ThreadPool* pool) {
  const Config& config = *model.config;
  const std::size_t n_tokens = tokens.size();
  const std::size_t chunk = std::min(chunk_rows, n_tokens);
  const std::size_t n_body_steps = (n_tokens + chunk - 1) / chunk * (1 + config.n_layers);
  const std::size_t logits_begin = all_logits ? 0 : n_tokens - 1;
  const std::size_t n_logits_rows = n_tokens - logits_begin;
  KVLENS_TRY(auto ids, Buffer<std::uint32_t>::uninitialised(n_tokens));
  std::ranges::copy(tokens, ids.data());
  KVLENS_TRY(auto workspace, Workspace<T>::create(config, chunk, n_tokens, thread_count(pool)));
  KVLENS_TRY(auto rope, ops::RopeTable<T>::create(config.rope, config.head_dim, n_tokens));
  KVLENS_TRY(auto layer_cache, LayerKvCache<T>::create(layer_geometry(config, n_tokens), kv_dtype));
  KVLENS_TRY(auto residual, Buffer<T>::uninitialised({n_tokens, config.d_model}));
  KVLENS_TRY(auto logits, Buffer<T>::uninitialised({n_logits_rows, config.vocab_size}));
  return StepwiseReplay(
      std::make_unique<State>(State{.model = model,
                                    .pool = pool,
                                    .chunk = chunk,
                                    .n_body_steps = n_body_steps,
                                    .n_steps = n_body_steps + (n_logits_rows + chunk - 1) / chunk,
                                    .logits_begin = logits_begin,
                                    .tokens = std::move(ids),
                                    .workspace = std::move(workspace),
                                    .rope = std::move(rope),
                                    .layer_cache = std::move(layer_cache),
                                    .residual = std::move(residual),
                                    .replay = {.logits = std::move(logits), .work = {}}}));
}

template <class T>
std::size_t StepwiseReplay<T>::n_steps() const noexcept {
  return state_ ? state_->n_steps : 0;
}

template <class T>
Result<std::size_t> StepwiseReplay<T>::advance(StageTap<T>* tap) {
  if (!state_) return fail(ErrorCode::no_call_in_progress, NoContext{}, "the replay has ended");
  if (state_->n_done < state_->n_steps) {
    if (auto done = state_->step(tap); !done) {
      state_.reset();
      return std::unexpected(std::move(done).error());
    }
  }
  return state_->n_steps - state_->n_done;
}

template <class T>
Result<Replay<T>> StepwiseReplay<T>::finish(StageTap<T>* tap) {
  for (std::size_t left = 1; left > 0;) {
    KVLENS_TRY(left, advance(tap));
  }
  Replay<T> replay = std::move(state_->replay);
  state_.reset();
  return replay;
}

template class StepwiseReplay<float>;
template class StepwiseReplay<double>;

}  // namespace kvlens
