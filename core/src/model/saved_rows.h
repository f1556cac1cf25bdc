// The rows and token ids that a cache holds at one moment, kept although later calls write over
// them.
//
// Rows are divided into blocks. A block is copied when one of its rows is about to be overwritten
// for the first time; until then its rows are read from the cache itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kvlens/error.h"
#include "kvlens/kv_cache.h"
#include "kvlens/memory.h"

namespace kvlens {

template <class T>
class SavedRows {
 public:
  // The cache must outlive the result, which it knows until then. Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<SavedRows>> create(KvCache<T>& cache);
  ~SavedRows();
  SavedRows(const SavedRows&) = delete;
  SavedRows& operator=(const SavedRows&) = delete;

  // To be called before rows [begin, end) of the cache are written. Errors: out_of_memory; what is
  // kept can still be restored.
  [[nodiscard]] Result<void> keep(std::size_t begin, std::size_t end);
  // Whether `restore` is possible. Errors: savepoint_ended, cache_changed (a layer has got other
  // storage).
  [[nodiscard]] Result<void> check() const;
  // Gives the cache back the rows and tokens of then, and ends all SavedRows made later. `check`
  // must have succeeded.
  void restore() noexcept;

 private:
  static constexpr std::size_t block_rows = 64;

  SavedRows(KvCache<T>& cache, Buffer<std::uint32_t> tokens);
  [[nodiscard]] std::size_t block_end(std::size_t block) const noexcept;

  KvCache<T>& cache_;
  std::vector<std::uint64_t> storage_ids_;  // [n_layers]
  Buffer<std::uint32_t> tokens_;            // [rows held then]
  // [ceil(rows held then / block_rows)], each empty or the rows of every layer, one after another.
  std::vector<Buffer<std::byte>> blocks_;
};

extern template class SavedRows<float>;
extern template class SavedRows<double>;

}  // namespace kvlens
