// Copies of a cache's rows.
#pragma once

#include <cstddef>
#include <vector>

#include "kvlens/kv_cache.h"

namespace kvlens::testing {

// Of one lane's KV head, [len, head_dim].
template <class T>
std::vector<T> keys_of(const LayerKvCache<T>& cache, std::size_t lane, std::size_t kv_head) {
  std::vector<T> keys(cache.len() * cache.geometry().head_dim);
  cache.read_keys(lane, kv_head, 0, keys);
  return keys;
}
template <class T>
std::vector<T> values_of(const LayerKvCache<T>& cache, std::size_t lane, std::size_t kv_head) {
  std::vector<T> values(cache.len() * cache.geometry().head_dim);
  cache.read_values(lane, kv_head, 0, values);
  return values;
}

}  // namespace kvlens::testing
