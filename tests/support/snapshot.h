// Everything about a session that a caller can observe, so that "unchanged" can be checked.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvlens/session.h"
#include "kvlens/work.h"
#include "support/cache_rows.h"
#include "support/expect.h"

namespace kvlens::testing {

template <class T>
struct Snapshot {
  std::size_t kv_len;
  std::vector<std::uint32_t> tokens;
  Work work;
  std::vector<T> logits;
  bool call_in_progress;
  std::vector<std::size_t> layer_lens;
  std::vector<std::uint64_t> storage_ids;
  std::vector<std::uint64_t> hashes;  // of each layer's committed rows
  std::vector<T> rows;                // keys then values, layer by layer, head by head
};

template <class T>
Snapshot<T> snapshot(const Session<T>& session) {
  Snapshot<T> state;
  state.kv_len = session.kv_len();
  state.tokens = {session.tokens().begin(), session.tokens().end()};
  state.work = session.work();
  state.logits = copy_of(session.logits());
  state.call_in_progress = session.call_in_progress();
  const KvCache<T>& cache = *session.cache();
  for (const LayerKvCache<T>& layer : cache.layers()) {
    state.layer_lens.push_back(layer.len());
    state.storage_ids.push_back(layer.storage_id());
    state.hashes.push_back(layer.content_hash(layer.len()));
    for (std::size_t head = 0; head < layer.geometry().n_kv_heads; ++head) {
      const std::vector<T> keys = keys_of(layer, 0, head);
      const std::vector<T> values = values_of(layer, 0, head);
      state.rows.insert(state.rows.end(), keys.begin(), keys.end());
      state.rows.insert(state.rows.end(), values.begin(), values.end());
    }
  }
  return state;
}

inline std::string differing_counters(const Work& actual, const Work& expected) {
  std::string names;
#define KVLENS_COMPARE(name)                                               \
  if (actual.name != expected.name) {                                      \
    names += " " #name " " + std::to_string(actual.name) + ", expected " + \
             std::to_string(expected.name);                                \
  }
  KVLENS_WORK_COUNTERS(KVLENS_COMPARE)
#undef KVLENS_COMPARE
  return names;
}

inline ::testing::AssertionResult same_work(const Work& actual, const Work& expected) {
  if (actual == expected) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "work differs:" << differing_counters(actual, expected);
}

template <class T>
::testing::AssertionResult same_state(const Snapshot<T>& actual, const Snapshot<T>& expected) {
  const auto differs = [](const char* what) {
    return ::testing::AssertionFailure() << what << " differs: ";
  };
  if (actual.kv_len != expected.kv_len) {
    return differs("kv_len") << actual.kv_len << ", expected " << expected.kv_len;
  }
  if (actual.tokens != expected.tokens) return differs("tokens");
  if (actual.work != expected.work) return same_work(actual.work, expected.work);
  if (actual.call_in_progress != expected.call_in_progress) return differs("call_in_progress");
  if (actual.layer_lens != expected.layer_lens) return differs("a layer's length");
  if (actual.storage_ids != expected.storage_ids) return differs("a layer's storage");
  if (actual.hashes != expected.hashes) return differs("a layer's content hash");
  if (const auto same = same_bits(std::span<const T>(actual.rows), expected.rows); !same) {
    return differs("rows") << same.message();
  }
  if (const auto same = same_bits(std::span<const T>(actual.logits), expected.logits); !same) {
    return differs("logits") << same.message();
  }
  return ::testing::AssertionSuccess();
}

// As same_state, for two sessions on caches of their own.
template <class T>
::testing::AssertionResult same_content(Snapshot<T> actual, const Snapshot<T>& expected) {
  actual.storage_ids = expected.storage_ids;
  return same_state(actual, expected);
}

}  // namespace kvlens::testing
