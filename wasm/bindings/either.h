// One handle for both compute types: JavaScript sees one class where C++ has two instances of a
// template.
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "kvlens/kv_cache.h"
#include "kvlens/memory.h"
#include "kvlens/replay.h"
#include "kvlens/savepoint.h"
#include "kvlens/session.h"
#include "row_recorder.h"

namespace kvlens::js {

template <template <class> class Object>
class Either {
 public:
  template <class T>
  explicit Either(std::shared_ptr<Object<T>> object) : object_(std::move(object)) {}

  // `use(object)` with the object of whichever type; its result must not depend on the type.
  template <class F>
  decltype(auto) visit(F&& use) const {
    if (const auto* object = std::get_if<0>(&object_)) return use(**object);
    return use(**std::get_if<1>(&object_));
  }
  // The package passes only objects of one compute type to a call.
  template <class T>
  [[nodiscard]] const std::shared_ptr<Object<T>>& as() const {
    return *std::get_if<std::shared_ptr<Object<T>>>(&object_);
  }

 private:
  std::variant<std::shared_ptr<Object<float>>, std::shared_ptr<Object<double>>> object_;
};

using AnyCache = Either<KvCache>;
using AnySession = Either<Session>;
using AnySavepoint = Either<Savepoint>;
using AnyReplay = Either<StepwiseReplay>;
using AnyRecorder = Either<RowRecorder>;
using AnyLogits = Either<Buffer>;

// A handle to a value that a call of compute type T returned.
template <template <class> class Object, class T>
[[nodiscard]] Either<Object> either(Object<T> object) {
  return Either<Object>(std::make_shared<Object<T>>(std::move(object)));
}

// The tap of a call of compute type T; null for none.
template <class T>
[[nodiscard]] RowRecorder<T>* tap_of(const AnyRecorder* recorder) {
  return recorder == nullptr ? nullptr : recorder->as<T>().get();
}

}  // namespace kvlens::js
