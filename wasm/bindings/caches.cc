// Key/value caches.
#include <emscripten/bind.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings/either.h"
#include "marshal.h"

namespace kvlens::js {
namespace {

using emscripten::class_;
using emscripten::function;
using emscripten::register_type;

// Fills a JavaScript array, [.., head_dim], with rows of a cache.
template <bool keys>
Outcome<void> read_rows(const AnyCache& any, std::size_t layer, std::size_t kv_head,
                        std::size_t row_begin, const Floats& out) {
  return any.visit([&]<class T>(const KvCache<T>& cache) {
    auto rows = Buffer<T>::uninitialised(out["length"].as<std::size_t>());
    if (!rows) return Outcome<void>(failure(rows.error()));
    const LayerKvCache<T>& from = cache.layers()[layer];
    if constexpr (keys) {
      from.read_keys(0, kv_head, row_begin, rows->span());
    } else {
      from.read_values(0, kv_head, row_begin, rows->span());
    }
    out.call<void>("set", view(std::span<const T>(rows->span())));
    return outcome(Result<void>());
  });
}

template <class T>
Outcome<AnyCache> create(const Model& model, std::size_t capacity, DType dtype) {
  return outcome<AnyCache>(KvCache<T>::create(model, capacity, dtype),
                           [](std::shared_ptr<KvCache<T>> cache) { return AnyCache(cache); });
}

EMSCRIPTEN_BINDINGS(kvlens_caches) {
  register_type<Hashes>("bigint[]");
  register_type<Outcome<AnyCache>>("Outcome<KvCache>");
  class_<AnyCache>("KvCache")
      .function(
          "len()",
          +[](const AnyCache& any) { return any.visit([](auto& cache) { return cache.len(); }); })
      .function(
          "capacity()",
          +[](const AnyCache& any) {
            return any.visit([](auto& cache) { return cache.capacity(); });
          })
      .function(
          "bytes()",
          +[](const AnyCache& any) {
            return any.visit([](auto& cache) { return static_cast<double>(cache.bytes()); });
          })
      .function(
          "tokensView()",
          +[](const AnyCache& any) {
            return any.visit([](auto& cache) { return Ids(view(cache.tokens())); });
          })
      .function(
          "layerLen(layer)",
          +[](const AnyCache& any, std::size_t layer) {
            return any.visit([&](auto& cache) { return cache.layers()[layer].len(); });
          })
      .function("readKeys(layer, kvHead, rowBegin, out)", &read_rows<true>)
      .function("readValues(layer, kvHead, rowBegin, out)", &read_rows<false>)
      // One hash for each length.
      .function(
          "contentHashes(layer, lengths)",
          +[](const AnyCache& any, std::size_t layer, const Ids& array) {
            const std::vector<std::size_t> lengths = sizes_from(array);
            std::vector<std::uint64_t> hashes(lengths.size());
            any.visit([&](auto& cache) { cache.layers()[layer].content_hashes(lengths, hashes); });
            return Hashes(val::array(hashes));
          });
  function(
      "createCache(model, doubles, capacity, dtype)",
      +[](const Model& model, bool doubles, std::size_t capacity, const std::string& name) {
        const DType dtype = dtype_named(name);
        return doubles ? create<double>(model, capacity, dtype)
                       : create<float>(model, capacity, dtype);
      });
}

}  // namespace
}  // namespace kvlens::js
