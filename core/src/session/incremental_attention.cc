#include "kvlens/incremental_attention.h"

#include <algorithm>
#include <string>

#include "base/argument_checks.h"
#include "base/try.h"
#include "forward/attention.h"
#include "model/binding_checks.h"

namespace kvlens {
namespace {

// Shows each stage of one lane to the caller's tap, then copies its row into the step.
template <class T>
class LaneRecorder final : public StageTap<T> {
 public:
  LaneRecorder(AttentionStep<T>& step, StageTap<T>* next) : step_(step), next_(next) {}

  void set_lane(std::size_t lane) noexcept { lane_ = lane; }

  [[nodiscard]] bool wants(Stage stage, std::size_t layer) const noexcept override {
    return target(stage) != nullptr || (next_ != nullptr && next_->wants(stage, layer));
  }
  [[nodiscard]] Result<void> at(const StageSite& site, std::span<T> values) override {
    if (next_ != nullptr && next_->wants(site.stage, site.layer)) {
      KVLENS_CHECK(next_->at(site, values));
    }
    if (Buffer<T>* buffer = target(site.stage)) {
      std::ranges::copy(values, buffer->data() + lane_ * values.size());
    }
    return {};
  }

 private:
  [[nodiscard]] Buffer<T>* target(Stage stage) const noexcept {
    switch (stage) {
      case Stage::q_projection:
        return &step_.projected_q;
      case Stage::k_projection:
        return &step_.projected_k;
      case Stage::v_projection:
        return &step_.projected_v;
      case Stage::q_rope:
        return &step_.rotated_q;
      case Stage::k_rope:
        return &step_.rotated_k;
      case Stage::attention_weights:
        return &step_.weights;
      case Stage::head_outputs:
        return &step_.head_outputs;
      case Stage::attention_output:
        return &step_.output;
      default:
        return nullptr;
    }
  }

  AttentionStep<T>& step_;
  StageTap<T>* next_;
  std::size_t lane_ = 0;
};

Result<void> check_cache(const LayerGeometry& geometry, const Config& config, std::size_t layer,
                         std::size_t capacity) {
  if (geometry.capacity > capacity) {
    return fail(ErrorCode::layer_geometry_mismatch,
                LayerMismatchContext{layer, capacity, geometry.capacity},
                "cache has capacity " + std::to_string(geometry.capacity) +
                    ", the attention can step at most " + std::to_string(capacity));
  }
  return check_geometry(config, layer, geometry);
}

Result<void> check_shape(const std::vector<std::size_t>& shape, std::size_t n_values,
                         std::size_t batch, std::size_t width) {
  const auto mismatch = [](ErrorCode code, std::string_view what, std::uint64_t expected,
                           std::uint64_t actual) {
    return fail(code, MismatchContext{expected, actual},
                "hidden state has " + std::string(what) + " " + std::to_string(actual) +
                    ", expected " + std::to_string(expected));
  };
  if (shape.size() != 3) return mismatch(ErrorCode::rank_mismatch, "rank", 3, shape.size());
  if (shape[1] != 1) return mismatch(ErrorCode::not_a_single_token, "token count", 1, shape[1]);
  if (shape[0] != batch) return mismatch(ErrorCode::batch_mismatch, "batch", batch, shape[0]);
  if (shape[2] != width) return mismatch(ErrorCode::width_mismatch, "width", width, shape[2]);
  if (n_values != batch * width) {
    return fail(ErrorCode::shape_mismatch, ShapeContext{"hidden", {batch, 1, width}, {n_values}},
                "hidden state has " + std::to_string(n_values) + " values, its shape says " +
                    std::to_string(batch * width));
  }
  return {};
}

template <class T>
Result<AttentionStep<T>> allocate_step(const Config& config, std::size_t batch, std::size_t len) {
  AttentionStep<T> step{};
  step.batch = batch;
  step.len = len;
  KVLENS_TRY(step.projected_q, Buffer<T>::uninitialised({batch, config.q_width()}));
  KVLENS_TRY(step.projected_k, Buffer<T>::uninitialised({batch, config.kv_width()}));
  KVLENS_TRY(step.projected_v, Buffer<T>::uninitialised({batch, config.kv_width()}));
  KVLENS_TRY(step.rotated_q, Buffer<T>::uninitialised({batch, config.q_width()}));
  KVLENS_TRY(step.rotated_k, Buffer<T>::uninitialised({batch, config.kv_width()}));
  KVLENS_TRY(step.weights, Buffer<T>::uninitialised({batch, config.n_heads, len}));
  KVLENS_TRY(step.head_outputs, Buffer<T>::uninitialised({batch, config.q_width()}));
  KVLENS_TRY(step.merged, Buffer<T>::uninitialised({batch, config.q_width()}));
  KVLENS_TRY(step.output, Buffer<T>::uninitialised({batch, config.d_model}));
  return step;
}

}  // namespace

template <class T>
struct IncrementalAttention<T>::State {
  Model::Borrow model;
  std::size_t layer;
  std::size_t capacity;
  BoundAttention<T> bound = {};
  ops::RopeTable<T> rope = {};
  Workspace<T> workspace = {};

  State(std::shared_ptr<Model> borrowed, std::size_t layer_index, std::size_t max_len)
      : model(std::move(borrowed)), layer(layer_index), capacity(max_len) {}
};

template <class T>
IncrementalAttention<T>::IncrementalAttention(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
template <class T>
IncrementalAttention<T>::IncrementalAttention(IncrementalAttention&&) noexcept = default;
template <class T>
IncrementalAttention<T>& IncrementalAttention<T>::operator=(IncrementalAttention&&) noexcept =
    default;
template <class T>
IncrementalAttention<T>::~IncrementalAttention() = default;

template <class T>
Result<IncrementalAttention<T>> IncrementalAttention<T>::create(std::shared_ptr<Model> model,
                                                                std::size_t layer,
                                                                std::size_t capacity) {
  const Config& config = model->config();
  if (layer >= config.n_layers) {
    return fail(
        ErrorCode::invalid_argument,
        FieldContext{"layer", std::to_string(layer), "0 to " + std::to_string(config.n_layers - 1)},
        "layer is " + std::to_string(layer) + ", the model has " + std::to_string(config.n_layers) +
            " layers");
  }
  KVLENS_CHECK(check_capacity(capacity, config.max_seq_len));
  auto state = std::make_unique<State>(std::move(model), layer, capacity);
  KVLENS_TRY(state->bound, bind_attention<T>(*state->model, layer));
  KVLENS_TRY(state->rope, ops::RopeTable<T>::create(config.rope, config.head_dim, capacity));
  KVLENS_TRY(state->workspace, Workspace<T>::create(config, 1, capacity, 1));
  return IncrementalAttention(std::move(state));
}

template <class T>
Result<AttentionStep<T>> IncrementalAttention<T>::step(const TensorView<T>& hidden,
                                                       LayerKvCache<T>& cache, StageTap<T>* tap) {
  State& state = *state_;
  const Config& config = state.model->config();
  const LayerGeometry& geometry = cache.geometry();
  KVLENS_CHECK(check_shape(hidden.shape, hidden.values.size(), geometry.batch, config.d_model));
  KVLENS_CHECK(check_cache(geometry, config, state.layer, state.capacity));
  const std::size_t position = cache.len();
  const PreparedRows prepared = cache.prepared(1);
  KVLENS_CHECK(cache.check(prepared));

  KVLENS_TRY(auto step, allocate_step<T>(config, geometry.batch, position + 1));
  LaneRecorder<T> recorder(step, tap);
  Work work;
  const ForwardPass<T> pass{state.workspace, nullptr, &recorder, work, std::nullopt};
  const AttentionLayer<T> layer{config, state.bound, state.rope, state.layer};
  for (std::size_t lane = 0; lane < geometry.batch; ++lane) {
    recorder.set_lane(lane);
    std::ranges::copy(hidden.values.subspan(lane * config.d_model, config.d_model),
                      state.workspace.normed.data());
    KVLENS_CHECK_AT(attention_rows(pass, layer, RowRange{position, 1}, cache, lane),
                    "incremental attention", std::nullopt);
  }
  std::ranges::copy(step.head_outputs.span(), step.merged.data());
  KVLENS_CHECK(cache.commit(prepared));
  step.full_prefix_rows = std::uint64_t{3} * geometry.batch * step.len;
  step.incremental_rows = work.qkv_projection_rows;
  step.reused_rows = std::uint64_t{2} * geometry.batch * position;
  return step;
}

template class IncrementalAttention<float>;
template class IncrementalAttention<double>;

}  // namespace kvlens
