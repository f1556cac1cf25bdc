#include "model/saved_rows.h"

#include <algorithm>
#include <string>

#include "base/try.h"

namespace kvlens {

template <class T>
Result<std::unique_ptr<SavedRows<T>>> SavedRows<T>::create(KvCache<T>& cache) {
  KVLENS_TRY(auto tokens, Buffer<std::uint32_t>::uninitialised(cache.len()));
  std::ranges::copy(cache.tokens(), tokens.data());
  return std::unique_ptr<SavedRows>(new SavedRows(cache, std::move(tokens)));
}

template <class T>
SavedRows<T>::SavedRows(KvCache<T>& cache, Buffer<std::uint32_t> tokens)
    : cache_(cache),
      tokens_(std::move(tokens)),
      blocks_((tokens_.size() + block_rows - 1) / block_rows) {
  for (const LayerKvCache<T>& layer : cache.layers()) storage_ids_.push_back(layer.storage_id());
  cache_.saved_rows_.push_back(this);
}

template <class T>
SavedRows<T>::~SavedRows() {
  std::erase(cache_.saved_rows_, this);
}

template <class T>
std::size_t SavedRows<T>::block_end(std::size_t block) const noexcept {
  return std::min((block + 1) * block_rows, tokens_.size());
}

template <class T>
Result<void> SavedRows<T>::keep(std::size_t begin, std::size_t end) {
  end = std::min(end, tokens_.size());
  if (begin >= end) return {};
  for (std::size_t block = begin / block_rows; block * block_rows < end; ++block) {
    if (blocks_[block].size() != 0) continue;
    const std::size_t first = block * block_rows;
    const std::size_t n_rows = block_end(block) - first;
    std::size_t size = 0;
    for (const LayerKvCache<T>& layer : cache_.layers()) size += layer.stored_bytes(n_rows);
    KVLENS_TRY(blocks_[block], Buffer<std::byte>::uninitialised(size));
    std::byte* to = blocks_[block].data();
    for (const LayerKvCache<T>& layer : cache_.layers()) {
      layer.copy_stored(first, n_rows, to);
      to += layer.stored_bytes(n_rows);
    }
  }
  return {};
}

template <class T>
Result<void> SavedRows<T>::check() const {
  if (std::ranges::find(cache_.saved_rows_, this) == cache_.saved_rows_.end()) {
    return fail(ErrorCode::savepoint_ended, NoContext{},
                "the savepoint has ended: the cache was rolled back to an earlier one");
  }
  for (std::size_t layer = 0; layer < storage_ids_.size(); ++layer) {
    KVLENS_CHECK_AT(cache_.layers()[layer].check_storage(storage_ids_[layer]),
                    "decoder layer " + std::to_string(layer), std::nullopt);
  }
  return {};
}

template <class T>
void SavedRows<T>::restore() noexcept {
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].size() == 0) continue;
    const std::size_t first = block * block_rows;
    const std::size_t n_rows = block_end(block) - first;
    const std::byte* from = blocks_[block].data();
    for (LayerKvCache<T>& layer : cache_.layers()) {
      layer.write_stored(first, n_rows, from);
      from += layer.stored_bytes(n_rows);
    }
    blocks_[block] = {};
  }
  for (LayerKvCache<T>& layer : cache_.layers()) layer.set_len(tokens_.size());
  std::ranges::copy(tokens_.span(), cache_.tokens_.data());
  auto& saved = cache_.saved_rows_;
  saved.erase(std::ranges::find(saved, this) + 1, saved.end());
}

template class SavedRows<float>;
template class SavedRows<double>;

}  // namespace kvlens
