// The key/value cache: one LayerKvCache per layer, each with storage of its own.
//
// Rows are [batch, n_kv_heads, capacity, head_dim], keys already rotated, in the compute type or,
// for float, rounded to bfloat16, which halves what attention reads, or to Q8_0 blocks, which leave
// a little more than a quarter. `len` selects the logical prefix. Rows at and after `len` are
// scratch: a forward pass writes its rows there, and a commit only advances `len`, so a call that
// fails has changed nothing that anyone can read. Threading: one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kvlens/config.h"
#include "kvlens/dtype.h"
#include "kvlens/error.h"
#include "kvlens/memory.h"
#include "kvlens/model.h"

namespace kvlens {

struct LayerGeometry {
  std::size_t batch = 1;  // independent lanes
  std::size_t n_kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t capacity = 0;     // rows a lane can hold, 1..max_seq_len
  std::size_t max_seq_len = 0;  // positions the model knows
  RopeSpec rope;                // how the stored keys are rotated
};
// Of one sequence of a model.
[[nodiscard]] LayerGeometry layer_geometry(const Config& config, std::size_t capacity);

// Rows written at and after `len` that are not yet part of the prefix, and the state of the cache
// they were prepared for.
struct PreparedRows {
  std::uint64_t storage_id;
  std::size_t base_len;
  std::size_t n_rows;
};

template <class T>
class SavedRows;

template <class T>
class LayerKvCache {
 public:
  // `dtype` is what rows are stored as: the compute type or, for float, bf16, or q8_0 where
  // head_dim is a multiple of 32 up to 512. Errors: zero_batch, zero_capacity,
  // capacity_exceeds_max_seq_len, invalid_argument (another dtype), size_overflow, out_of_memory.
  [[nodiscard]] static Result<LayerKvCache> create(const LayerGeometry& geometry,
                                                   DType dtype = dtype_of<T>);

  LayerKvCache(LayerKvCache&&) noexcept = default;
  LayerKvCache& operator=(LayerKvCache&&) noexcept = default;

  // Adds one row to every lane: `keys` and `values` are [batch, n_kv_heads, head_dim], keys rotated
  // for position `len`. Errors: cache_full, shape_mismatch, non_finite_value (which includes values
  // beyond the largest of a bfloat16 or Q8_0 block, where rows are stored so); the cache is
  // unchanged.
  [[nodiscard]] Result<void> append(std::span<const T> keys, std::span<const T> values);

  // Writes row `len + offset` of one lane as scratch: `key` and `value` are [n_kv_heads, head_dim].
  // Errors: cache_full, shape_mismatch, non_finite_value (index in the row); `len` and the rows
  // before it are unchanged either way.
  [[nodiscard]] Result<void> prepare(std::size_t lane, std::size_t offset, std::span<const T> key,
                                     std::span<const T> value);
  // What a later commit checks itself against.
  [[nodiscard]] PreparedRows prepared(std::size_t n_rows) const noexcept;
  // Errors: cache_changed (storage or length differ from when the rows were prepared), cache_full.
  [[nodiscard]] Result<void> check(const PreparedRows& rows) const;
  // `check`, then `len += n_rows`; unchanged on error.
  [[nodiscard]] Result<void> commit(const PreparedRows& rows);

  // Keeps the first `len` rows. Errors: invalid_length (more than there are); unchanged.
  [[nodiscard]] Result<void> truncate(std::size_t len);
  // len = 0; the allocation and its bytes stay.
  void reset() noexcept { len_ = 0; }

  [[nodiscard]] std::size_t len() const noexcept { return len_; }
  [[nodiscard]] const LayerGeometry& geometry() const noexcept { return geometry_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] std::uint64_t storage_id() const noexcept { return storage_id_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return keys_.size() + values_.size(); }
  // Of one KV head's keys or values at one position.
  [[nodiscard]] std::size_t row_bytes() const noexcept;

  // Copies rows of one lane's KV head from `row_begin` on, as many as `out`, [.., head_dim], holds;
  // all have to lie before `len`. Exact, whatever they are stored as.
  void read_keys(std::size_t lane, std::size_t kv_head, std::size_t row_begin,
                 std::span<T> out) const noexcept;
  void read_values(std::size_t lane, std::size_t kv_head, std::size_t row_begin,
                   std::span<T> out) const noexcept;
  // Of the first `n_rows` rows, at most `len`, from their bytes as they are now: the ContentHash of
  // the ContentHashes of every lane's heads, a head's keys before its values.
  [[nodiscard]] std::uint64_t content_hash(std::size_t n_rows) const;
  // The same for several lengths, reading each row once: `hashes[i]` is of `lengths[i]` rows.
  void content_hashes(std::span<const std::size_t> lengths, std::span<std::uint64_t> hashes) const;

  // Rows [row_begin, row_begin + n_rows) as they are stored, out of the cache and back into it:
  // `stored_bytes(n_rows)` bytes, for every lane's heads a head's keys and then its values.
  [[nodiscard]] std::size_t stored_bytes(std::size_t n_rows) const noexcept;
  void copy_stored(std::size_t row_begin, std::size_t n_rows, std::byte* to) const noexcept;
  void write_stored(std::size_t row_begin, std::size_t n_rows, const std::byte* from) noexcept;

  // For the kernels: one lane's KV head from row 0 on, prepared rows included: [capacity, head_dim]
  // of `dtype`.
  [[nodiscard]] const std::byte* key_rows(std::size_t lane, std::size_t kv_head) const noexcept;
  [[nodiscard]] const std::byte* value_rows(std::size_t lane, std::size_t kv_head) const noexcept;

 private:
  friend class SavedRows<T>;
  LayerKvCache(LayerGeometry geometry, DType dtype)
      : geometry_(std::move(geometry)), dtype_(dtype) {}
  // Errors: cache_changed (the rows lie in other storage).
  [[nodiscard]] Result<void> check_storage(std::uint64_t storage_id) const;
  // `len` rows must have been written.
  void set_len(std::size_t len) noexcept { len_ = len; }
  // Where a row begins in `keys_` and `values_`.
  [[nodiscard]] std::size_t row_offset(std::size_t lane, std::size_t kv_head,
                                       std::size_t row) const noexcept;
  // [head_dim] values to a row's place and back.
  void store_row(std::span<const T> row, std::byte* to) const noexcept;
  void read_rows(const std::byte* from, std::span<T> out) const noexcept;

  LayerGeometry geometry_;
  DType dtype_;
  Buffer<std::byte> keys_;    // [batch, n_kv_heads, capacity, head_dim] of dtype_
  Buffer<std::byte> values_;  // [batch, n_kv_heads, capacity, head_dim] of dtype_
  std::size_t len_ = 0;
  std::uint64_t storage_id_ = 0;  // unique in the process
};

// The caches of all layers of one model, and what the model was when they were made.
template <class T>
class KvCache {
 public:
  struct CapturedParameter {
    std::uint64_t identity;
    std::uint64_t revision;
  };

  // `dtype` as in LayerKvCache. Errors: zero_capacity, capacity_exceeds_max_seq_len,
  // invalid_argument (dtype), size_overflow, out_of_memory.
  [[nodiscard]] static Result<std::shared_ptr<KvCache>> create(const Model& model,
                                                               std::size_t capacity,
                                                               DType dtype = dtype_of<T>);
  // Takes layers made elsewhere as they are; binding checks them. `tokens` are the ids of the rows.
  // Errors: invalid_argument (as many tokens as the first layer has rows), out_of_memory.
  [[nodiscard]] static Result<std::shared_ptr<KvCache>> adopt(
      const Model& model, std::vector<LayerKvCache<T>> layers,
      std::span<const std::uint32_t> tokens);

  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] std::span<const CapturedParameter> captured() const noexcept { return captured_; }
  [[nodiscard]] std::span<LayerKvCache<T>> layers() noexcept { return layers_; }
  [[nodiscard]] std::span<const LayerKvCache<T>> layers() const noexcept { return layers_; }
  [[nodiscard]] std::size_t len() const noexcept { return layers_.empty() ? 0 : layers_[0].len(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return tokens_.size(); }
  // What the first layer's rows, and once a session is bound all, are stored as.
  [[nodiscard]] DType dtype() const noexcept {
    return layers_.empty() ? dtype_of<T> : layers_[0].dtype();
  }
  // Ids of the committed rows, [len].
  [[nodiscard]] std::span<const std::uint32_t> tokens() const noexcept {
    return tokens_.span().first(len());
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept;

 private:
  template <class U>
  friend class Session;
  friend class SavedRows<T>;
  KvCache(const Model& model, std::vector<LayerKvCache<T>> layers, Buffer<std::uint32_t> tokens);

  Config config_;
  std::vector<CapturedParameter> captured_;
  std::vector<LayerKvCache<T>> layers_;
  Buffer<std::uint32_t> tokens_;   // [capacity], the first len are ids of committed rows
  bool call_in_progress_ = false;  // a session is writing scratch rows
  // Of the savepoints that can be returned to, oldest first: told of rows before they are written.
  std::vector<SavedRows<T>*> saved_rows_;
};

extern template class LayerKvCache<float>;
extern template class LayerKvCache<double>;
extern template class KvCache<float>;
extern template class KvCache<double>;

}  // namespace kvlens
