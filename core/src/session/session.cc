#include "kvlens/session.h"

#include <algorithm>
#include <string>

#include "base/argument_checks.h"
#include "base/parallel.h"
#include "base/try.h"
#include "forward/decoder.h"
#include "forward/workspace.h"
#include "model/binding_checks.h"
#include "model/bound_model.h"
#include "model/saved_rows.h"

namespace kvlens {

template <class T>
struct Savepoint<T>::State {
  const Session<T>* session;
  std::shared_ptr<KvCache<T>> cache;  // outlives `rows`
  std::unique_ptr<SavedRows<T>> rows;
  Buffer<T> logits;  // [vocab_size], or empty when there were none
  Work work;
};

template <class T>
Savepoint<T>::Savepoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <class T>
Savepoint<T>::Savepoint(Savepoint&&) noexcept = default;
template <class T>
Savepoint<T>& Savepoint<T>::operator=(Savepoint&&) noexcept = default;
template <class T>
Savepoint<T>::~Savepoint() = default;

template <class T>
struct Session<T>::State {
  Model::Borrow model;
  std::shared_ptr<KvCache<T>> cache;
  SessionOptions options;
  BoundModel<T> bound;
  ops::RopeTable<T> rope;  // of the positions that the cache can hold
  Workspace<T> workspace;
  std::vector<std::uint64_t> storage_ids;  // of each layer's cache, as bound
  Buffer<T> logits;                        // of the last call that succeeded
  Buffer<T> staged_logits;                 // of the call under way
  bool has_logits = false;
  Work work;

  // The open call, if there is one.
  struct Call {
    bool open = false;
    Phase phase = Phase::prefill;
    Buffer<std::uint32_t> tokens;  // [capacity]
    std::size_t n_tokens = 0;
    std::size_t n_done = 0;
    std::size_t last_row = 0;  // of the workspace, where the newest residual stands
    Work work;
    std::uint64_t last_row_entries = 0;
    std::vector<PreparedRows> prepared;  // a layer each, as the cache was when the call began
  } call;

  State(std::shared_ptr<Model> bound_model, std::shared_ptr<KvCache<T>> bound_cache,
        const SessionOptions& session_options)
      : model(std::move(bound_model)), cache(std::move(bound_cache)), options(session_options) {}

  [[nodiscard]] const Config& config() const { return model->config(); }

  [[nodiscard]] Result<void> allocate() {
    const std::size_t capacity = cache->capacity();
    KVLENS_TRY(bound, BoundModel<T>::create(*model));
    KVLENS_TRY(rope, ops::RopeTable<T>::create(config().rope, config().head_dim, capacity));
    KVLENS_TRY(workspace, Workspace<T>::create(config(), std::min(options.chunk_rows, capacity),
                                               capacity, thread_count(options.pool.get())));
    KVLENS_TRY(logits, Buffer<T>::uninitialised(config().vocab_size));
    KVLENS_TRY(staged_logits, Buffer<T>::uninitialised(config().vocab_size));
    KVLENS_TRY(call.tokens, Buffer<std::uint32_t>::uninitialised(capacity));
    call.prepared.resize(config().n_layers);
    for (const LayerKvCache<T>& layer : cache->layers()) storage_ids.push_back(layer.storage_id());
    return {};
  }

  [[nodiscard]] ForwardPass<T> pass(StageTap<T>* tap) {
    return {workspace, options.pool.get(), tap, call.work, std::nullopt};
  }

  void close_call() {
    call.open = false;
    cache->call_in_progress_ = false;
  }

  // Between calls a cache's layers move together and keep their storage. Errors: cache_changed.
  [[nodiscard]] Result<void> check_layers_together() const {
    for (std::size_t layer = 0; layer < storage_ids.size(); ++layer) {
      KVLENS_CHECK_AT(cache->layers()[layer].check({storage_ids[layer], cache->len(), 0}),
                      "decoder layer " + std::to_string(layer), std::nullopt);
    }
    return {};
  }

  // Everything of the cache must still be as it was when the call began.
  [[nodiscard]] Result<void> check_cache() const {
    for (std::size_t layer = 0; layer < call.prepared.size(); ++layer) {
      KVLENS_CHECK_AT(cache->layers()[layer].check(call.prepared[layer]),
                      "decoder layer " + std::to_string(layer) + ": commit", std::nullopt);
    }
    return {};
  }

  [[nodiscard]] Result<void> compute_chunk(StageTap<T>* tap) {
    KVLENS_CHECK(check_cache());
    const std::size_t n_rows =
        std::min({options.chunk_rows, cache->capacity(), call.n_tokens - call.n_done});
    const RowRange rows{cache->len() + call.n_done, n_rows};
    const ForwardPass<T> forward = pass(tap);
    T* residual = workspace.residual.data();
    KVLENS_CHECK(embed_rows(forward, bound, call.tokens.span().subspan(call.n_done, n_rows), rows,
                            residual));
    for (std::size_t layer = 0; layer < config().n_layers; ++layer) {
      KVLENS_CHECK(layer_rows(forward, bound, rope, layer, rows, cache->layers()[layer], residual));
    }
    call.work.token_forwards += n_rows;
    call.n_done += n_rows;
    call.last_row = n_rows - 1;
    return {};
  }

  [[nodiscard]] Result<Step<T>> complete(StageTap<T>* tap) {
    while (call.n_done < call.n_tokens) KVLENS_CHECK(compute_chunk(tap));
    const std::size_t len = cache->len();
    const RowRange last{len + call.n_tokens - 1, 1};
    KVLENS_CHECK(logits_rows(pass(tap), bound, last,
                             workspace.residual.data() + call.last_row * config().d_model,
                             staged_logits.data()));
    KVLENS_CHECK(check_cache());
    (call.phase == Phase::prefill ? call.work.prefill_tokens : call.work.decode_tokens) +=
        call.n_tokens;
    call.work.cache_appends += call.n_tokens * config().n_layers;
    KVLENS_TRY(const Work total, checked_add(work, call.work));

    // Nothing below can fail.
    for (std::size_t layer = 0; layer < call.prepared.size(); ++layer) {
      (void)cache->layers()[layer].commit(call.prepared[layer]);
    }
    std::ranges::copy(call.tokens.span().first(call.n_tokens), cache->tokens_.data() + len);
    work = total;
    std::swap(logits, staged_logits);
    has_logits = true;
    return Step<T>{.logits = logits.span(),
                   .position = last.first_position,
                   .kv_len_before = len,
                   .kv_len = cache->len(),
                   .row_attention_score_values =
                       std::uint64_t{config().n_layers} * config().n_heads * cache->len(),
                   .work = call.work};
  }
};

template <class T>
Session<T>::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}

template <class T>
Session<T>::~Session() {
  abandon();
}

template <class T>
Result<std::unique_ptr<Session<T>>> Session<T>::bind(std::shared_ptr<Model> model,
                                                     std::shared_ptr<KvCache<T>> cache,
                                                     const SessionOptions& options) {
  if (options.chunk_rows == 0) {
    return fail(ErrorCode::invalid_argument, FieldContext{"chunk_rows", "0", "1 or more"},
                "chunk_rows is 0, it must be at least 1");
  }
  KVLENS_CHECK(check_same(cache->config(), model->config()));
  KVLENS_CHECK(check_parameters(*model, *cache));
  KVLENS_CHECK(check_layers(model->config(), *cache));
  auto state = std::make_unique<State>(std::move(model), std::move(cache), options);
  KVLENS_CHECK(state->allocate());
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

template <class T>
Result<void> Session<T>::begin(Phase phase, std::span<const std::uint32_t> tokens) {
  KvCache<T>& cache = *state_->cache;
  if (cache.call_in_progress_) return call_in_progress_error();
  KVLENS_CHECK(state_->check_layers_together());
  const std::size_t len = cache.len();
  if (phase == Phase::prefill && len != 0) {
    return fail(ErrorCode::not_empty, CountContext{len},
                "prefill needs an empty cache, this one holds " + std::to_string(len) +
                    (len == 1 ? " row" : " rows"));
  }
  if (phase == Phase::extend && len == 0) {
    return fail(ErrorCode::not_prefilled, NoContext{}, "decode needs a prefill before it");
  }
  if (phase == Phase::prefill) {
    KVLENS_CHECK(check_prompt_size(tokens.size(), cache.capacity()));
  }
  KVLENS_CHECK(check_tokens(tokens, state_->config().vocab_size));
  KVLENS_CHECK(check_room(len + tokens.size(), cache.capacity()));
  for (SavedRows<T>* saved : cache.saved_rows_) {
    KVLENS_CHECK(saved->keep(len, len + tokens.size()));
  }
  auto& call = state_->call;
  std::ranges::copy(tokens, call.tokens.data());
  call.phase = phase;
  call.n_tokens = tokens.size();
  call.n_done = 0;
  call.work = Work{};
  for (std::size_t layer = 0; layer < call.prepared.size(); ++layer) {
    call.prepared[layer] = cache.layers()[layer].prepared(tokens.size());
  }
  call.open = true;
  cache.call_in_progress_ = true;
  return {};
}

template <class T>
Result<std::size_t> Session<T>::advance(StageTap<T>* tap) {
  auto& call = state_->call;
  if (!call.open) {
    return fail(ErrorCode::no_call_in_progress, NoContext{}, "no call has begun");
  }
  if (call.n_done < call.n_tokens) {
    if (auto done = state_->compute_chunk(tap); !done) {
      abandon();
      return std::unexpected(std::move(done).error());
    }
  }
  return call.n_tokens - call.n_done;
}

template <class T>
Result<Step<T>> Session<T>::finish(StageTap<T>* tap) {
  if (!state_->call.open) {
    return fail(ErrorCode::no_call_in_progress, NoContext{}, "no call has begun");
  }
  auto step = state_->complete(tap);
  abandon();  // closes the call; after a commit there is nothing left to drop
  return step;
}

template <class T>
void Session<T>::abandon() noexcept {
  if (state_->call.open) state_->close_call();
}

template <class T>
bool Session<T>::call_in_progress() const noexcept {
  return state_->call.open;
}

template <class T>
Result<Step<T>> Session<T>::prefill(std::span<const std::uint32_t> tokens, StageTap<T>* tap) {
  KVLENS_CHECK(begin(Phase::prefill, tokens));
  return finish(tap);
}

template <class T>
Result<Step<T>> Session<T>::decode(std::uint32_t token, StageTap<T>* tap) {
  return extend({&token, 1}, tap);
}

template <class T>
Result<Step<T>> Session<T>::extend(std::span<const std::uint32_t> tokens, StageTap<T>* tap) {
  KVLENS_CHECK(begin(Phase::extend, tokens));
  return finish(tap);
}

template <class T>
Result<StepwiseReplay<T>> Session<T>::begin_replay(std::span<const std::uint32_t> tokens,
                                                   bool all_logits) const {
  const Config& config = state_->config();
  if (state_->cache->call_in_progress_) return call_in_progress_error();
  KVLENS_CHECK(check_prompt_size(tokens.size(), config.max_seq_len, "the model's max_seq_len"));
  KVLENS_CHECK(check_tokens(tokens, config.vocab_size));
  return StepwiseReplay<T>::begin(state_->bound, tokens, all_logits, state_->cache->dtype(),
                                  state_->options.chunk_rows, state_->options.pool.get());
}

template <class T>
Result<Replay<T>> Session<T>::replay(std::span<const std::uint32_t> tokens, bool all_logits,
                                     StageTap<T>* tap) const {
  KVLENS_TRY(auto steps, begin_replay(tokens, all_logits));
  return steps.finish(tap);
}

template <class T>
Result<void> Session<T>::truncate(std::size_t len) {
  KvCache<T>& cache = *state_->cache;
  if (cache.call_in_progress_) return call_in_progress_error();
  if (len == 0 || len > cache.len()) {
    return fail(ErrorCode::invalid_length, LimitContext{len, cache.len()},
                "cannot keep " + std::to_string(len) + " rows, allowed is 1 to the " +
                    std::to_string(cache.len()) + " that the cache holds");
  }
  for (LayerKvCache<T>& layer : cache.layers()) (void)layer.truncate(len);
  state_->has_logits = false;
  return {};
}

template <class T>
void Session<T>::clear() noexcept {
  abandon();
  for (LayerKvCache<T>& layer : state_->cache->layers()) layer.reset();
  state_->has_logits = false;
}

template <class T>
void Session<T>::reset() noexcept {
  clear();
  state_->work = Work{};
}

template <class T>
Result<Savepoint<T>> Session<T>::savepoint() {
  if (state_->cache->call_in_progress_) return call_in_progress_error();
  KVLENS_CHECK(state_->check_layers_together());
  KVLENS_TRY(auto saved_logits, Buffer<T>::uninitialised(logits().size()));
  std::ranges::copy(logits(), saved_logits.data());
  KVLENS_TRY(auto rows, SavedRows<T>::create(*state_->cache));
  return Savepoint<T>(std::make_unique<typename Savepoint<T>::State>(
      this, state_->cache, std::move(rows), std::move(saved_logits), state_->work));
}

template <class T>
Result<void> Session<T>::rollback(const Savepoint<T>& savepoint) {
  const auto& saved = *savepoint.state_;
  if (saved.session != this) {
    return fail(ErrorCode::invalid_argument,
                FieldContext{"savepoint", "another session's", "made by this session"},
                "the savepoint was made by another session");
  }
  if (state_->cache->call_in_progress_ && !state_->call.open) return call_in_progress_error();
  KVLENS_CHECK(saved.rows->check());
  abandon();
  saved.rows->restore();
  std::ranges::copy(saved.logits.span(), state_->logits.data());
  state_->has_logits = saved.logits.size() != 0;
  state_->work = saved.work;
  return {};
}

template <class T>
const Work& Session<T>::work() const noexcept {
  return state_->work;
}

template <class T>
std::size_t Session<T>::kv_len() const noexcept {
  return state_->cache->len();
}

template <class T>
std::size_t Session<T>::capacity() const noexcept {
  return state_->cache->capacity();
}

template <class T>
std::span<const std::uint32_t> Session<T>::tokens() const noexcept {
  return state_->cache->tokens();
}

template <class T>
std::span<const T> Session<T>::logits() const noexcept {
  return state_->has_logits ? state_->logits.span() : std::span<const T>{};
}

template <class T>
const std::shared_ptr<Model>& Session<T>::model() const noexcept {
  return state_->model.shared();
}

template <class T>
const std::shared_ptr<KvCache<T>>& Session<T>::cache() const noexcept {
  return state_->cache;
}

template class Savepoint<float>;
template class Savepoint<double>;
template class Session<float>;
template class Session<double>;

}  // namespace kvlens
