#include "marshal.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace kvlens::js {
namespace {

val number(std::uint64_t value) { return val(static_cast<double>(value)); }
val text(std::string_view value) { return val(std::string(value)); }

template <class Range, class F>
val array_of(const Range& range, F&& convert) {
  val array = val::array();
  for (const auto& element : range) array.call<void>("push", convert(element));
  return array;
}

val site_value(const SiteContext& site) {
  val value = val::object();
  value.set("stage", site.stage);
  value.set("layer", number(site.layer));
  value.set("position", number(site.position));
  return value;
}

// One overload a context; a new alternative of the variant does not compile without its own.
struct ContextToValue {
  val operator()(const NoContext&) const { return val::object(); }
  val operator()(const FieldContext& context) const {
    val value = val::object();
    value.set("field", context.field);
    value.set("value", context.value);
    value.set("allowed", context.allowed);
    return value;
  }
  val operator()(const NameContext& context) const {
    val value = val::object();
    value.set("name", context.name);
    return value;
  }
  val operator()(const MismatchContext& context) const {
    val value = val::object();
    value.set("expected", number(context.expected));
    value.set("actual", number(context.actual));
    return value;
  }
  val operator()(const LayerMismatchContext& context) const {
    val value = val::object();
    value.set("layer", number(context.layer));
    value.set("expected", number(context.expected));
    value.set("actual", number(context.actual));
    return value;
  }
  val operator()(const ShapeContext& context) const {
    val value = val::object();
    value.set("name", context.name);
    value.set("expected", array_of(context.expected, number));
    value.set("actual", array_of(context.actual, number));
    return value;
  }
  val operator()(const LimitContext& context) const {
    val value = val::object();
    value.set("value", number(context.value));
    value.set("limit", number(context.limit));
    return value;
  }
  val operator()(const CountContext& context) const {
    val value = val::object();
    value.set("count", number(context.count));
    return value;
  }
  val operator()(const BytesContext& context) const {
    val value = val::object();
    value.set("bytes", number(context.bytes));
    return value;
  }
  val operator()(const ValueContext& context) const {
    val value = val::object();
    value.set("tensor", context.tensor);
    value.set("index", number(context.index));
    value.set("value", context.value);
    return value;
  }
  val operator()(const TokenContext& context) const {
    val value = val::object();
    value.set("position", number(context.position));
    value.set("id", number(context.id));
    value.set("vocabSize", number(context.vocab_size));
    return value;
  }
  val operator()(const IdentityContext& context) const {
    val value = val::object();
    value.set("index", number(context.index));
    value.set("name", context.name);
    return value;
  }
  val operator()(const RevisionContext& context) const {
    val value = val::object();
    value.set("index", number(context.index));
    value.set("name", context.name);
    value.set("captured", number(context.captured));
    value.set("current", number(context.current));
    return value;
  }
  val operator()(const SiteContext& context) const { return site_value(context); }
};

val shape_value(const ParameterSpec& spec) {
  val shape = val::array();
  if (!spec.is_vector) shape.call<void>("push", number(spec.rows));
  shape.call<void>("push", number(spec.cols));
  return shape;
}

// n_layers as nLayers.
std::string camel_case(std::string_view name) {
  std::string camel;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool after_underscore = name[i] == '_' && i + 1 < name.size();
    camel += after_underscore ? static_cast<char>(name[++i] - 'a' + 'A') : name[i];
  }
  return camel;
}

RopeSpec rope_from(const val& rope) {
  return {.pairing = rope["pairing"].as<std::string>() == "half_split" ? RopePairing::half_split
                                                                       : RopePairing::interleaved,
          .theta = rope["theta"].as<double>(),
          .freq_factors = emscripten::vecFromJSArray<double>(rope["freqFactors"])};
}

val rope_value(const RopeSpec& rope) {
  val value = val::object();
  value.set("pairing",
            text(rope.pairing == RopePairing::half_split ? "half_split" : "interleaved"));
  value.set("theta", rope.theta);
  value.set("freqFactors", array_of(rope.freq_factors, [](double factor) { return val(factor); }));
  return value;
}

std::string_view stop_name(StopReason stop) {
  switch (stop) {
    case StopReason::eos:
      return "eos";
    case StopReason::token_limit:
      return "token_limit";
    case StopReason::context_limit:
      return "context_limit";
  }
  return "";
}

}  // namespace

val failure(const Error& error) {
  val value = val::object();
  value.set("ok", false);
  value.set("code", text(error_code_name(error.code)));
  value.set("message", error.message);
  value.set("context", std::visit(ContextToValue{}, error.context));
  value.set("site", error.site ? site_value(*error.site) : val::null());
  value.set("cause", error.cause ? failure(*error.cause) : val::null());
  return value;
}

Outcome<void> outcome(const Result<void>& result) {
  return result ? success<void>(val::null()) : Outcome<void>(failure(result.error()));
}

Result<Buffer<std::byte>> copy_in_bytes(const Bytes& array) {
  auto buffer = Buffer<std::byte>::uninitialised(array["length"].as<std::size_t>());
  if (buffer && buffer->size() != 0) {
    val(emscripten::typed_memory_view(buffer->size(),
                                      reinterpret_cast<std::uint8_t*>(buffer->data())))
        .call<void>("set", array);
  }
  return buffer;
}

DType dtype_named(const std::string& name) { return dtype_from_name(name).value_or(DType::f32); }

Config config_from(const ConfigValue& value) {
  Config config;
  for_each_field(
      [&]<class Field>(std::string_view name, Field& field) {
        const val given = value[camel_case(name)];
        if constexpr (std::is_same_v<Field, RopeSpec>) {
          field = rope_from(given);
        } else {
          field = given.as<Field>();
        }
      },
      config);
  return config;
}

ConfigValue config_value(const Config& config) {
  val value = val::object();
  for_each_field(
      [&]<class Field>(std::string_view name, const Field& field) {
        if constexpr (std::is_same_v<Field, RopeSpec>) {
          value.set(camel_case(name), rope_value(field));
        } else {
          value.set(camel_case(name), field);
        }
      },
      config);
  return ConfigValue(value);
}

SamplingConfig sampling_from(const SamplingValue& value) {
  return {.greedy = value["greedy"].as<bool>(),
          .temperature = value["temperature"].as<double>(),
          .top_k = value["topK"].as<std::size_t>(),
          .top_p = value["topP"].as<double>(),
          .min_p = value["minP"].as<double>(),
          .repetition_penalty = value["repetitionPenalty"].as<double>()};
}

Work work_from(const WorkValue& value) {
  const auto counters = emscripten::convertJSArrayToNumberVector<double>(value);
  Work work;
  std::size_t index = 0;
#define KVLENS_WORK_READ(name) work.name = static_cast<std::uint64_t>(counters[index++]);
  KVLENS_WORK_COUNTERS(KVLENS_WORK_READ)
#undef KVLENS_WORK_READ
  return work;
}

WorkValue work_value(const Work& work) {
  const double counters[] = {
#define KVLENS_WORK_WRITE(name) static_cast<double>(work.name),
      KVLENS_WORK_COUNTERS(KVLENS_WORK_WRITE)
#undef KVLENS_WORK_WRITE
  };
  return WorkValue(view(std::span<const double>(counters)).call<val>("slice"));
}

std::vector<std::size_t> sizes_from(const Ids& value) {
  return emscripten::convertJSArrayToNumberVector<std::size_t>(value);
}

val specs_value(std::span<const ParameterSpec> specs) {
  return array_of(specs, [](const ParameterSpec& spec) {
    val value = val::object();
    value.set("name", spec.name);
    value.set("shape", shape_value(spec));
    return value;
  });
}

val parameters_value(std::span<const Parameter> parameters) {
  return array_of(parameters, [](const Parameter& parameter) {
    val value = val::object();
    value.set("name", parameter.spec.name);
    value.set("dtype", text(dtype_info(parameter.dtype).name));
    value.set("shape", shape_value(parameter.spec));
    value.set("bytes", number(parameter.bytes.size()));
    value.set("revision", number(parameter.revision));
    return value;
  });
}

val draw_value(const Draw& draw) {
  val value = val::object();
  value.set("token", draw.token);
  value.set("probability", draw.probability);
  if (draw.unit_draw) value.set("unitDraw", *draw.unit_draw);
  val interval = val::array();
  interval.call<void>("push", draw.interval_start);
  interval.call<void>("push", draw.interval_end);
  value.set("interval", interval);
  value.set("candidates", number(draw.candidates));
  return value;
}

val generation_value(const Generation& generation, const SplitMix64& rng) {
  val value = val::object();
  value.set("tokens", view(std::span(generation.tokens)).call<val>("slice"));
  value.set("stop", text(stop_name(generation.stop)));
  value.set("steps", array_of(generation.steps, [](const GenerateStep& step) {
              val step_value = val::object();
              step_value.set("prefixLength", number(step.prefix_length));
              step_value.set("draw", draw_value(step.draw));
              return step_value;
            }));
  value.set("work", work_value(generation.work));
  value.set("rngState", rng.state());
  return value;
}

val ranked_value(std::span<const RankedToken> tokens) {
  val array = val::array();
  for (const RankedToken& ranked : tokens) {
    array.call<void>("push", ranked.token, ranked.logit, ranked.logprob);
  }
  return array;
}

val contrast_value(const Contrast& contrast) {
  val value = val::object();
  value.set("cachedScoreValues", number(contrast.cached_score_values));
  value.set("replayScoreValues", number(contrast.replay_score_values));
  value.set("avoidedScoreValues", number(contrast.avoided_score_values));
  value.set("cachedProjectionRows", number(contrast.cached_projection_rows));
  value.set("replayProjectionRows", number(contrast.replay_projection_rows));
  value.set("avoidedProjectionRows", number(contrast.avoided_projection_rows));
  return value;
}

}  // namespace kvlens::js
