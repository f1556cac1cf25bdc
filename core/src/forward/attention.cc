#include "forward/attention.h"

#include <atomic>
#include <cmath>

#include "base/parallel.h"
#include "forward/products.h"
#include "ops/attend.h"
#include "ops/row_ops.h"

namespace kvlens {
namespace {

template <class T>
void add_bias(const Buffer<T>& bias, const RowRange& rows, T* values) {
  if (bias.size() == 0) return;
  for (std::size_t row = 0; row < rows.n_rows; ++row) {
    ops::add(std::span<T>(values + row * bias.size(), bias.size()), bias.span());
  }
}

template <class T>
void norm_heads(const Buffer<T>& gain, T eps, std::size_t n_heads, const RowRange& rows,
                T* values) {
  for (std::size_t head = 0; head < rows.n_rows * n_heads; ++head) {
    const std::span<T> one(values + head * gain.size(), gain.size());
    ops::rms_norm(std::span<const T>(one), gain.span(), eps, one);
  }
}

// Queries, keys and values of the rows, keys and queries rotated.
template <class T>
Result<void> project(const ForwardPass<T>& pass, const AttentionLayer<T>& layer,
                     const RowRange& rows) {
  const Config& config = layer.config;
  Workspace<T>& ws = pass.workspace;
  const BoundAttention<T>& weights = layer.weights;
  pass.work.multiply_adds_qkv += multiply_rows<T>(pass, ws.normed.data(), rows.n_rows,
                                                  {{weights.q_proj, ws.q.data()},
                                                   {weights.k_proj, ws.k.data()},
                                                   {weights.v_proj, ws.v.data()}});
  pass.work.qkv_projection_rows += 3 * rows.n_rows;
  add_bias(weights.q_bias, rows, ws.q.data());
  add_bias(weights.k_bias, rows, ws.k.data());
  add_bias(weights.v_bias, rows, ws.v.data());
  KVLENS_CHECK(pass.show(Stage::q_projection, layer.index, rows, ws.q.data(), config.q_width()));
  KVLENS_CHECK(pass.show(Stage::k_projection, layer.index, rows, ws.k.data(), config.kv_width()));
  KVLENS_CHECK(pass.show(Stage::v_projection, layer.index, rows, ws.v.data(), config.kv_width()));

  if (config.qk_norm) {
    const T eps = static_cast<T>(config.rms_norm_eps);
    norm_heads(weights.q_norm, eps, config.n_heads, rows, ws.q.data());
    norm_heads(weights.k_norm, eps, config.n_kv_heads, rows, ws.k.data());
    KVLENS_CHECK(pass.show(Stage::q_norm, layer.index, rows, ws.q.data(), config.q_width()));
    KVLENS_CHECK(pass.show(Stage::k_norm, layer.index, rows, ws.k.data(), config.kv_width()));
  }

  const std::size_t width = config.q_width() + config.kv_width();
  run_rows(pass.pool, rows.n_rows, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t position = rows.first_position + row;
      layer.rope.apply(position, {ws.q.data() + row * config.q_width(), config.q_width()});
      layer.rope.apply(position, {ws.k.data() + row * config.kv_width(), config.kv_width()});
    }
  });
  KVLENS_CHECK(pass.show(Stage::q_rope, layer.index, rows, ws.q.data(), config.q_width()));
  KVLENS_CHECK(pass.show(Stage::k_rope, layer.index, rows, ws.k.data(), config.kv_width()));
  KVLENS_CHECK(check_finite_rows(Stage::q_rope, layer.index, rows, ws.q.data(), config.q_width(),
                                 "query RoPE"));
  return check_finite_rows(Stage::k_rope, layer.index, rows, ws.k.data(), config.kv_width(),
                           "key RoPE");
}

template <class T>
Result<void> prepare_rows(const ForwardPass<T>& pass, const AttentionLayer<T>& layer,
                          const RowRange& rows, LayerKvCache<T>& cache, std::size_t lane) {
  const std::size_t width = layer.config.kv_width();
  for (std::size_t row = 0; row < rows.n_rows; ++row) {
    const std::size_t position = rows.first_position + row;
    KVLENS_CHECK_AT(
        cache.prepare(lane, position - cache.len(), {pass.workspace.k.data() + row * width, width},
                      {pass.workspace.v.data() + row * width, width}),
        "cache append",
        (SiteContext{std::string(stage_name(Stage::k_rope)), layer.index, position}));
    pass.work.kv_bytes_written += 2 * layer.config.n_kv_heads * cache.row_bytes();
  }
  return {};
}

template <class T>
ops::KeyValueRows head_rows(const LayerKvCache<T>& cache, std::size_t lane, std::size_t kv_head) {
  return {.dtype = cache.dtype(),
          .keys = cache.key_rows(lane, kv_head),
          .values = cache.value_rows(lane, kv_head),
          .head_dim = cache.geometry().head_dim};
}

template <class T>
T score_scale(const Config& config) {
  return T(1) / std::sqrt(static_cast<T>(config.head_dim));
}

// Query heads [first, first + n_heads), which share one KV head.
struct HeadGroup {
  std::size_t kv_head;
  std::size_t first;
  std::size_t n_heads;
};

// Calls `each` for the groups of the query heads [heads.begin, heads.end).
template <class F>
void for_each_group(const Config& config, const IndexRange& heads, F&& each) {
  const std::size_t group_size = config.group_size();
  for (std::size_t first = heads.begin; first < heads.end;) {
    const std::size_t kv_head = first / group_size;
    const std::size_t end = std::min(heads.end, (kv_head + 1) * group_size);
    each(HeadGroup{kv_head, first, end - first});
    first = end;
  }
}

// Adds up what the parts of a pool did.
class AttendTally {
 public:
  void operator+=(const ops::AttendWork& work) noexcept {
    scores_ += work.scores;
    mixed_rows_ += work.mixed_rows;
  }
  void add_to(Work& work, const Config& config, std::size_t row_bytes) const noexcept {
    work.causal_score_values += scores_;
    work.multiply_adds_scores += scores_ * config.head_dim;
    work.multiply_adds_mix += mixed_rows_ * config.head_dim;
    work.kv_bytes_read += (scores_ + mixed_rows_) * row_bytes;
  }

 private:
  std::atomic<std::uint64_t> scores_{0};
  std::atomic<std::uint64_t> mixed_rows_{0};
};

// Multiply-adds of the scores and the mix of a call over `rows`, or a little more.
std::uint64_t attention_cost(const Config& config, const RowRange& rows) {
  const std::size_t len = rows.end() - config.window_begin(rows.first_position);
  return std::uint64_t{2} * rows.n_rows * len * config.q_width();
}

// Blocks of rows, each cut by query heads for the threads of the pool.
template <class T>
void mix_blocks(const ForwardPass<T>& pass, const AttentionLayer<T>& layer, const RowRange& rows,
                const LayerKvCache<T>& cache, std::size_t lane) {
  const Config& config = layer.config;
  Workspace<T>& ws = pass.workspace;
  AttendTally tally;
  const std::size_t n_blocks = (rows.n_rows + ops::query_tile_rows - 1) / ops::query_tile_rows;
  const std::size_t n_threads = threads_for(pass.pool, attention_cost(config, rows));
  const std::size_t n_parts = std::min(n_threads, config.n_heads);  // of a block
  run_pieces(pass.pool, n_threads, n_blocks * n_parts, [&](std::size_t piece, std::size_t thread) {
    // Later blocks see more keys: they are the first to be taken.
    const std::size_t first_row = (n_blocks - 1 - piece / n_parts) * ops::query_tile_rows;
    const std::span<T> scratch =
        ws.scratch.span().subspan(thread * ws.scratch_per_thread, ws.scratch_per_thread);
    const IndexRange heads = part_of(config.n_heads, 1, piece % n_parts, n_parts);
    for_each_group(config, heads, [&](const HeadGroup& group) {
      const std::size_t offset = first_row * config.q_width() + group.first * config.head_dim;
      const ops::QueryBlock<T> block{
          .q = ws.q.data() + offset,
          .out = ws.heads.data() + offset,
          .row_stride = config.q_width(),
          .n_heads = group.n_heads,
          .first_position = rows.first_position + first_row,
          .n_rows = std::min(ops::query_tile_rows, rows.n_rows - first_row),
          .window = config.sliding_window};
      tally += ops::attend_block(head_rows(cache, lane, group.kv_head), block,
                                 score_scale<T>(config), scratch);
    });
  });
  tally.add_to(pass.work, config, cache.row_bytes());
}

// Row by row, so that a tap sees the weights. The same bits as mix_blocks.
template <class T>
Result<void> mix_shown(const ForwardPass<T>& pass, const AttentionLayer<T>& layer,
                       const RowRange& rows, const LayerKvCache<T>& cache, std::size_t lane) {
  const Config& config = layer.config;
  Workspace<T>& ws = pass.workspace;
  AttendTally tally;
  for (std::size_t row = 0; row < rows.n_rows; ++row) {
    const std::size_t position = rows.first_position + row;
    const ops::Positions seen{config.window_begin(position), position + 1};
    const T* q = ws.q.data() + row * config.q_width();
    T* heads = ws.heads.data() + row * config.q_width();
    const std::size_t n_threads = threads_for(pass.pool, attention_cost(config, {position, 1}));
    const std::size_t n_parts = std::min(n_threads, config.n_heads);
    const auto for_groups = [&](auto each) {
      run_pieces(pass.pool, n_threads, n_parts, [&](std::size_t part, std::size_t) {
        for_each_group(config, part_of(config.n_heads, 1, part, n_parts), each);
      });
    };
    for_groups([&](const HeadGroup& group) {
      tally += ops::attention_weights<T>(
          head_rows(cache, lane, group.kv_head),
          {q + group.first * config.head_dim, config.head_dim, group.n_heads}, seen,
          score_scale<T>(config),
          {ws.weights.data() + group.first * seen.end, seen.end, group.n_heads});
    });
    KVLENS_CHECK(pass.tap->at({Stage::attention_weights, layer.index, position},
                              ws.weights.span().first(config.n_heads * seen.end)));
    for_groups([&](const HeadGroup& group) {
      tally += ops::attention_mix<T>(
          head_rows(cache, lane, group.kv_head),
          {ws.weights.data() + group.first * seen.end, seen.end, group.n_heads}, seen,
          {heads + group.first * config.head_dim, config.head_dim, group.n_heads});
    });
  }
  tally.add_to(pass.work, config, cache.row_bytes());
  return {};
}

// Entries of the attention tensors made, as Work counts them.
template <class T>
void count_entries(const ForwardPass<T>& pass, const Config& config, const RowRange& rows) {
  for (std::size_t position = rows.first_position; position < rows.end(); ++position) {
    const std::uint64_t columns = pass.replayed_len.value_or(position + 1);
    pass.work.attention_score_values += config.n_heads * columns;
  }
}

}  // namespace

template <class T>
Result<void> attention_rows(const ForwardPass<T>& pass, const AttentionLayer<T>& layer,
                            const RowRange& rows, LayerKvCache<T>& cache, std::size_t lane) {
  const Config& config = layer.config;
  Workspace<T>& ws = pass.workspace;
  KVLENS_CHECK(project(pass, layer, rows));
  KVLENS_CHECK(prepare_rows(pass, layer, rows, cache, lane));
  if (pass.tapped(Stage::attention_weights, layer.index)) {
    KVLENS_CHECK(mix_shown(pass, layer, rows, cache, lane));
  } else {
    mix_blocks(pass, layer, rows, cache, lane);
  }
  count_entries(pass, config, rows);
  KVLENS_CHECK(
      pass.show(Stage::head_outputs, layer.index, rows, ws.heads.data(), config.q_width()));
  pass.work.multiply_adds_output += multiply_rows<T>(pass, ws.heads.data(), rows.n_rows,
                                                     {{layer.weights.o_proj, ws.branch.data()}});
  KVLENS_CHECK(
      pass.show(Stage::attention_output, layer.index, rows, ws.branch.data(), config.d_model));
  return check_finite_rows(Stage::attention_output, layer.index, rows, ws.branch.data(),
                           config.d_model, "output projection");
}

template Result<void> attention_rows<float>(const ForwardPass<float>&, const AttentionLayer<float>&,
                                            const RowRange&, LayerKvCache<float>&, std::size_t);
template Result<void> attention_rows<double>(const ForwardPass<double>&,
                                             const AttentionLayer<double>&, const RowRange&,
                                             LayerKvCache<double>&, std::size_t);

}  // namespace kvlens
