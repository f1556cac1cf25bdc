#include "kvlens/kv_cache.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "base/argument_checks.h"
#include "base/try.h"
#include "kvlens/content_hash.h"
#include "ops/attend_q8_0.h"
#include "ops/half.h"
#include "ops/packing.h"
#include "ops/row_ops.h"

namespace kvlens {
namespace {

std::uint64_t next_storage_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

template <class T>
Result<void> check_row(const char* what, std::span<const T> row, std::size_t heads,
                       std::size_t head_dim, DType dtype) {
  if (row.size() != heads * head_dim) {
    return fail(ErrorCode::shape_mismatch, ShapeContext{what, {heads, head_dim}, {row.size()}},
                std::string(what) + " has " + std::to_string(row.size()) + " values, expected " +
                    std::to_string(heads) + " x " + std::to_string(head_dim));
  }
  if (const auto index = ops::first_non_finite(row)) {
    const double value = static_cast<double>(row[*index]);
    return fail(ErrorCode::non_finite_value, ValueContext{what, *index, value},
                std::string(what) + " at index " + std::to_string(*index) + " is " +
                    std::to_string(value) + ", not a finite number");
  }
  if (dtype == dtype_of<T>) return {};
  const T largest = dtype == DType::bf16 ? ops::bfloat16_largest : ops::q8_0_largest;
  const auto beyond = std::ranges::find_if(row, [&](T value) { return std::abs(value) > largest; });
  if (beyond != row.end()) {
    const auto index = static_cast<std::uint64_t>(beyond - row.begin());
    const double value = static_cast<double>(*beyond);
    return fail(ErrorCode::non_finite_value, ValueContext{what, index, value},
                std::string(what) + " at index " + std::to_string(index) + " is " +
                    std::to_string(value) + ", beyond the largest that " +
                    std::string(dtype_info(dtype).name) + " can hold");
  }
  return {};
}

// Whether rows of compute type T can be stored as `dtype`.
template <class T>
Result<void> check_dtype(DType dtype, std::size_t head_dim) {
  if (dtype == dtype_of<T>) return {};
  std::string allowed = "f64";
  std::string where = std::string(dtype_info(dtype_of<T>).name) + " is computed";
  if constexpr (std::is_same_v<T, float>) {
    const bool has_blocks =
        head_dim % dtype_info(DType::q8_0).block_values == 0 && head_dim <= ops::q8_0_longest_row;
    if (dtype == DType::bf16 || (dtype == DType::q8_0 && has_blocks)) return {};
    allowed = has_blocks ? "f32, bf16 or q8_0" : "f32 or bf16";
    if (!has_blocks) where += " and head_dim is " + std::to_string(head_dim);
  }
  const std::string name(dtype_info(dtype).name);
  return fail(ErrorCode::invalid_argument, FieldContext{"kv_dtype", name, allowed},
              "kv_dtype is " + name + ", must be " + allowed + " where " + where);
}

// Hashes of several prefixes of a layer, its heads' rows taken one head after the other.
class PrefixHashes {
 public:
  PrefixHashes(std::span<const std::size_t> lengths, std::size_t row_bytes)
      : lengths_(lengths),
        row_bytes_(row_bytes),
        ascending_(lengths.size()),
        layer_(lengths.size()) {
    std::iota(ascending_.begin(), ascending_.end(), std::size_t{0});
    std::ranges::sort(ascending_, {}, [&](std::size_t i) { return lengths[i]; });
  }

  // One head's rows lie behind each other: they are read once, in one piece.
  void absorb_head(const std::byte* rows) {
    ContentHash head;
    std::size_t done = 0;
    for (const std::size_t i : ascending_) {
      head.absorb({rows + done * row_bytes_, (lengths_[i] - done) * row_bytes_});
      done = lengths_[i];
      const std::uint64_t value = head.value();
      layer_[i].absorb(std::as_bytes(std::span(&value, 1)));
    }
  }

  // One for each length.
  void values(std::span<std::uint64_t> hashes) const {
    for (std::size_t i = 0; i < layer_.size(); ++i) hashes[i] = layer_[i].value();
  }

 private:
  std::span<const std::size_t> lengths_;
  std::size_t row_bytes_;
  std::vector<std::size_t> ascending_;  // indices of lengths_
  std::vector<ContentHash> layer_;
};

}  // namespace

LayerGeometry layer_geometry(const Config& config, std::size_t capacity) {
  return {.batch = 1,
          .n_kv_heads = config.n_kv_heads,
          .head_dim = config.head_dim,
          .capacity = capacity,
          .max_seq_len = config.max_seq_len,
          .rope = config.rope};
}

template <class T>
Result<LayerKvCache<T>> LayerKvCache<T>::create(const LayerGeometry& geometry, DType dtype) {
  KVLENS_CHECK(check_dtype<T>(dtype, geometry.head_dim));
  if (geometry.batch == 0) {
    return fail(ErrorCode::zero_batch, NoContext{}, "cache batch is 0, it must be at least 1");
  }
  KVLENS_CHECK(check_capacity(geometry.capacity, geometry.max_seq_len));
  LayerKvCache cache(geometry, dtype);
  const DTypeInfo info = dtype_info(dtype);
  const auto shape = {geometry.batch, geometry.n_kv_heads, geometry.capacity,
                      geometry.head_dim / info.block_values, info.block_bytes};
  KVLENS_TRY(cache.keys_, Buffer<std::byte>::zeroed(shape));
  KVLENS_TRY(cache.values_, Buffer<std::byte>::zeroed(shape));
  cache.storage_id_ = next_storage_id();
  return cache;
}

template <class T>
std::size_t LayerKvCache<T>::row_bytes() const noexcept {
  return kvlens::stored_bytes(dtype_, geometry_.head_dim);
}

template <class T>
std::size_t LayerKvCache<T>::row_offset(std::size_t lane, std::size_t kv_head,
                                        std::size_t row) const noexcept {
  return ((lane * geometry_.n_kv_heads + kv_head) * geometry_.capacity + row) * row_bytes();
}

template <class T>
void LayerKvCache<T>::store_row(std::span<const T> row, std::byte* to) const noexcept {
  if (dtype_ == dtype_of<T>) {
    std::memcpy(to, row.data(), row.size_bytes());
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (dtype_ == DType::q8_0) return ops::store_q8_0(row, to);
  }
  for (const T value : row) {
    const ops::BFloat16 rounded = ops::to_bfloat16(static_cast<float>(value));
    std::memcpy(to, &rounded, sizeof rounded);
    to += sizeof rounded;
  }
}

template <class T>
void LayerKvCache<T>::read_rows(const std::byte* from, std::span<T> out) const noexcept {
  const ops::MatrixView stored{dtype_, Layout::rows, 1, out.size(), from};
  ops::dequantise_row(stored, 0, out);
}

template <class T>
Result<void> LayerKvCache<T>::append(std::span<const T> keys, std::span<const T> values) {
  const std::size_t row = geometry_.n_kv_heads * geometry_.head_dim;
  KVLENS_CHECK(
      check_row("keys", keys, geometry_.batch * geometry_.n_kv_heads, geometry_.head_dim, dtype_));
  KVLENS_CHECK(check_row("values", values, geometry_.batch * geometry_.n_kv_heads,
                         geometry_.head_dim, dtype_));
  for (std::size_t lane = 0; lane < geometry_.batch; ++lane) {
    KVLENS_CHECK(prepare(lane, 0, keys.subspan(lane * row, row), values.subspan(lane * row, row)));
  }
  return commit(prepared(1));
}

template <class T>
Result<void> LayerKvCache<T>::prepare(std::size_t lane, std::size_t offset, std::span<const T> key,
                                      std::span<const T> value) {
  const std::size_t row = len_ + offset;
  KVLENS_CHECK(check_room(row + 1, geometry_.capacity));
  KVLENS_CHECK(check_row("key", key, geometry_.n_kv_heads, geometry_.head_dim, dtype_));
  KVLENS_CHECK(check_row("value", value, geometry_.n_kv_heads, geometry_.head_dim, dtype_));
  for (std::size_t head = 0; head < geometry_.n_kv_heads; ++head) {
    const std::size_t to = row_offset(lane, head, row);
    const std::size_t from = head * geometry_.head_dim;
    store_row(key.subspan(from, geometry_.head_dim), keys_.data() + to);
    store_row(value.subspan(from, geometry_.head_dim), values_.data() + to);
  }
  return {};
}

template <class T>
PreparedRows LayerKvCache<T>::prepared(std::size_t n_rows) const noexcept {
  return {.storage_id = storage_id_, .base_len = len_, .n_rows = n_rows};
}

template <class T>
Result<void> LayerKvCache<T>::check_storage(std::uint64_t storage_id) const {
  if (storage_id == storage_id_) return {};
  return fail(ErrorCode::cache_changed, MismatchContext{storage_id, storage_id_},
              "rows were prepared for other storage (" + std::to_string(storage_id) +
                  ") than this cache's (" + std::to_string(storage_id_) + ")");
}

template <class T>
Result<void> LayerKvCache<T>::check(const PreparedRows& rows) const {
  KVLENS_CHECK(check_storage(rows.storage_id));
  if (rows.base_len != len_) {
    return fail(ErrorCode::cache_changed, MismatchContext{rows.base_len, len_},
                "rows were prepared at length " + std::to_string(rows.base_len) +
                    ", the cache now has " + std::to_string(len_));
  }
  return check_room(len_ + rows.n_rows, geometry_.capacity);
}

template <class T>
Result<void> LayerKvCache<T>::commit(const PreparedRows& rows) {
  KVLENS_CHECK(check(rows));
  len_ += rows.n_rows;
  return {};
}

template <class T>
Result<void> LayerKvCache<T>::truncate(std::size_t len) {
  if (len > len_) {
    return fail(
        ErrorCode::invalid_length, LimitContext{len, len_},
        "cannot keep " + std::to_string(len) + " rows, the cache has " + std::to_string(len_));
  }
  len_ = len;
  return {};
}

template <class T>
void LayerKvCache<T>::read_keys(std::size_t lane, std::size_t kv_head, std::size_t row_begin,
                                std::span<T> out) const noexcept {
  read_rows(keys_.data() + row_offset(lane, kv_head, row_begin), out);
}

template <class T>
void LayerKvCache<T>::read_values(std::size_t lane, std::size_t kv_head, std::size_t row_begin,
                                  std::span<T> out) const noexcept {
  read_rows(values_.data() + row_offset(lane, kv_head, row_begin), out);
}

template <class T>
std::size_t LayerKvCache<T>::stored_bytes(std::size_t n_rows) const noexcept {
  return 2 * geometry_.batch * geometry_.n_kv_heads * n_rows * row_bytes();
}

template <class T>
void LayerKvCache<T>::copy_stored(std::size_t row_begin, std::size_t n_rows,
                                  std::byte* to) const noexcept {
  const std::size_t size = n_rows * row_bytes();
  for (std::size_t lane = 0; lane < geometry_.batch; ++lane) {
    for (std::size_t head = 0; head < geometry_.n_kv_heads; ++head) {
      for (const Buffer<std::byte>* rows : {&keys_, &values_}) {
        std::memcpy(to, rows->data() + row_offset(lane, head, row_begin), size);
        to += size;
      }
    }
  }
}

template <class T>
void LayerKvCache<T>::write_stored(std::size_t row_begin, std::size_t n_rows,
                                   const std::byte* from) noexcept {
  const std::size_t size = n_rows * row_bytes();
  for (std::size_t lane = 0; lane < geometry_.batch; ++lane) {
    for (std::size_t head = 0; head < geometry_.n_kv_heads; ++head) {
      for (Buffer<std::byte>* rows : {&keys_, &values_}) {
        std::memcpy(rows->data() + row_offset(lane, head, row_begin), from, size);
        from += size;
      }
    }
  }
}

template <class T>
const std::byte* LayerKvCache<T>::key_rows(std::size_t lane, std::size_t kv_head) const noexcept {
  return keys_.data() + row_offset(lane, kv_head, 0);
}

template <class T>
const std::byte* LayerKvCache<T>::value_rows(std::size_t lane, std::size_t kv_head) const noexcept {
  return values_.data() + row_offset(lane, kv_head, 0);
}

template <class T>
void LayerKvCache<T>::content_hashes(std::span<const std::size_t> lengths,
                                     std::span<std::uint64_t> hashes) const {
  PrefixHashes all(lengths, row_bytes());
  for (std::size_t lane = 0; lane < geometry_.batch; ++lane) {
    for (std::size_t head = 0; head < geometry_.n_kv_heads; ++head) {
      all.absorb_head(key_rows(lane, head));
      all.absorb_head(value_rows(lane, head));
    }
  }
  all.values(hashes);
}

template <class T>
std::uint64_t LayerKvCache<T>::content_hash(std::size_t n_rows) const {
  std::uint64_t hash = 0;
  content_hashes({&n_rows, 1}, {&hash, 1});
  return hash;
}

template <class T>
KvCache<T>::KvCache(const Model& model, std::vector<LayerKvCache<T>> layers,
                    Buffer<std::uint32_t> tokens)
    : config_(model.config()), layers_(std::move(layers)), tokens_(std::move(tokens)) {
  captured_.reserve(model.parameters().size());
  for (const Parameter& parameter : model.parameters()) {
    captured_.push_back({parameter.identity, parameter.revision});
  }
}

template <class T>
Result<std::shared_ptr<KvCache<T>>> KvCache<T>::create(const Model& model, std::size_t capacity,
                                                       DType dtype) {
  const Config& config = model.config();
  std::vector<LayerKvCache<T>> layers;
  layers.reserve(config.n_layers);
  for (std::size_t layer = 0; layer < config.n_layers; ++layer) {
    KVLENS_TRY(auto cache, LayerKvCache<T>::create(layer_geometry(config, capacity), dtype));
    layers.push_back(std::move(cache));
  }
  KVLENS_TRY(auto tokens, Buffer<std::uint32_t>::zeroed(capacity));
  return std::shared_ptr<KvCache>(new KvCache(model, std::move(layers), std::move(tokens)));
}

template <class T>
Result<std::shared_ptr<KvCache<T>>> KvCache<T>::adopt(const Model& model,
                                                      std::vector<LayerKvCache<T>> layers,
                                                      std::span<const std::uint32_t> tokens) {
  const std::size_t len = layers.empty() ? 0 : layers[0].len();
  const std::size_t capacity = layers.empty() ? 0 : layers[0].geometry().capacity;
  if (tokens.size() != len) {
    return fail(ErrorCode::invalid_argument,
                FieldContext{"tokens", std::to_string(tokens.size()), std::to_string(len)},
                "the layers hold " + std::to_string(len) + " rows, got " +
                    std::to_string(tokens.size()) + " tokens");
  }
  KVLENS_TRY(auto ids, Buffer<std::uint32_t>::zeroed(capacity));
  std::ranges::copy(tokens, ids.data());
  return std::shared_ptr<KvCache>(new KvCache(model, std::move(layers), std::move(ids)));
}

template <class T>
std::uint64_t KvCache<T>::bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const LayerKvCache<T>& layer : layers_) bytes += layer.bytes();
  return bytes;
}

template class LayerKvCache<float>;
template class LayerKvCache<double>;
template class KvCache<float>;
template class KvCache<double>;

}  // namespace kvlens
