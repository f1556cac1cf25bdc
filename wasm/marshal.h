// Conversions between the core's types and JavaScript values, for bindings/.
//
// Every fallible call answers an Outcome: {ok: true, value} or a Failure, which holds all of an
// Error. Counters cross as doubles (the package reports one beyond 2^53 - 1 as work_overflow),
// hashes and the state of the random generator as bigints. Arguments have been checked by the
// package: here they are of the right JavaScript type. Views of the module's memory are valid until
// the next call.
#pragma once

#include <emscripten/val.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kvlens/config.h"
#include "kvlens/dtype.h"
#include "kvlens/error.h"
#include "kvlens/generate.h"
#include "kvlens/memory.h"
#include "kvlens/model.h"
#include "kvlens/sampling.h"
#include "kvlens/session.h"
#include "kvlens/work.h"

namespace kvlens::js {

using emscripten::val;

// A JavaScript value whose declared type is registered for Tag.
template <class Tag>
struct Typed : val {
  explicit Typed(const val& other) : val(other) {}
};

// {ok: true, value: V} | Failure, V being what is registered for the tag.
template <class V>
struct Outcome : val {
  explicit Outcome(const val& other) : val(other) {}
};

struct FailureTag;
using Failure = Typed<FailureTag>;
using ConfigValue = Typed<Config>;
using Bytes = Typed<struct BytesTag>;      // Uint8Array
using Ids = Typed<struct IdsTag>;          // Uint32Array
using Hashes = Typed<struct HashesTag>;    // bigint[]
using Doubles = Typed<struct DoublesTag>;  // Float64Array
using WorkValue = Typed<Work>;             // Float64Array in the order of the table
using SamplingValue = Typed<SamplingConfig>;
using Specs = Typed<ParameterSpec>;   // of a configuration
using Parameters = Typed<Parameter>;  // of a model
struct DrawAndState;
struct GenerationAndState;
struct RandomModel;
struct Ranked;
using Floats = Typed<struct FloatsTag>;  // Float32Array or Float64Array

[[nodiscard]] val failure(const Error& error);

template <class V>
[[nodiscard]] Outcome<V> success(const val& value) {
  val outcome = val::object();
  outcome.set("ok", true);
  outcome.set("value", value);
  return Outcome<V>(outcome);
}

// `convert` makes a JavaScript value of what a call gave.
template <class V, class T, class F>
[[nodiscard]] Outcome<V> outcome(Result<T> result, F&& convert) {
  if (!result) return Outcome<V>(failure(result.error()));
  return success<V>(val(std::forward<F>(convert)(*std::move(result))));
}
// Of a call that gives nothing.
[[nodiscard]] Outcome<void> outcome(const Result<void>& result);

// A view of the module's memory.
template <class T>
[[nodiscard]] val view(std::span<const T> values) {
  return val(emscripten::typed_memory_view(values.size(), values.data()));
}

// Copies a typed array into memory of the core. Errors: out_of_memory.
template <class T>
[[nodiscard]] Result<Buffer<T>> copy_in(const val& array) {
  auto buffer = Buffer<T>::uninitialised(array["length"].as<std::size_t>());
  if (buffer && buffer->size() != 0) {
    val(emscripten::typed_memory_view(buffer->size(), buffer->data()))
        .template call<void>("set", array);
  }
  return buffer;
}
// As bytes.
[[nodiscard]] Result<Buffer<std::byte>> copy_in_bytes(const Bytes& array);

// Calls `use` with the ids of a Uint32Array; its answer, or the failure to copy them.
template <class V, class F>
[[nodiscard]] Outcome<V> with_ids(const Ids& array, F&& use) {
  auto ids = copy_in<std::uint32_t>(array);
  if (!ids) return Outcome<V>(failure(ids.error()));
  return std::forward<F>(use)(std::span<const std::uint32_t>(ids->span()));
}

// The storage type of a name that the package has checked.
[[nodiscard]] DType dtype_named(const std::string& name);
[[nodiscard]] Config config_from(const ConfigValue& value);
[[nodiscard]] SamplingConfig sampling_from(const SamplingValue& value);
[[nodiscard]] Work work_from(const WorkValue& value);
[[nodiscard]] std::vector<std::size_t> sizes_from(const Ids& value);

[[nodiscard]] ConfigValue config_value(const Config& config);
[[nodiscard]] WorkValue work_value(const Work& work);
[[nodiscard]] val specs_value(std::span<const ParameterSpec> specs);
[[nodiscard]] val parameters_value(std::span<const Parameter> parameters);
[[nodiscard]] val draw_value(const Draw& draw);
[[nodiscard]] val generation_value(const Generation& generation, const SplitMix64& rng);
// Three numbers a token: id, logit, logarithm of its probability.
[[nodiscard]] val ranked_value(std::span<const RankedToken> tokens);
[[nodiscard]] val contrast_value(const Contrast& contrast);

// The logits are a view.
template <class T>
[[nodiscard]] val step_value(const Step<T>& step) {
  val value = val::object();
  value.set("logits", view(step.logits));
  value.set("position", step.position);
  value.set("kvLenBefore", step.kv_len_before);
  value.set("kvLen", step.kv_len);
  value.set("rowAttentionScoreValues", static_cast<double>(step.row_attention_score_values));
  value.set("work", work_value(step.work));
  return value;
}

}  // namespace kvlens::js
