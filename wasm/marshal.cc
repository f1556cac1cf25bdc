#include "marshal.h"

#include <string_view>
#include <utility>
#include <variant>

#include "kvlens/stage.h"

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

Failure example_failure(std::size_t code, std::size_t context) {
  Error error{.code = static_cast<ErrorCode>(code), .context = NoContext{}, .message = "example"};
  const auto choose = [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((I == context ? void(error.context.emplace<I>()) : void()), ...);
  };
  choose(std::make_index_sequence<std::variant_size_v<ErrorContext>>());
  return Failure(failure(error));
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

Config config_from(const ConfigValue& value) {
  const auto size = [&](const char* field) { return value[field].as<std::size_t>(); };
  const val rope = value["rope"];
  return Config{
      .n_layers = size("nLayers"),
      .n_heads = size("nHeads"),
      .n_kv_heads = size("nKvHeads"),
      .head_dim = size("headDim"),
      .d_model = size("dModel"),
      .d_ff = size("dFf"),
      .vocab_size = size("vocabSize"),
      .max_seq_len = size("maxSeqLen"),
      .rms_norm_eps = value["rmsNormEps"].as<double>(),
      .rope = {.pairing = rope["pairing"].as<std::string>() == "half_split"
                              ? RopePairing::half_split
                              : RopePairing::interleaved,
               .theta = rope["theta"].as<double>(),
               .freq_factors = emscripten::vecFromJSArray<double>(rope["freqFactors"])},
      .qkv_bias = value["qkvBias"].as<bool>(),
      .qk_norm = value["qkNorm"].as<bool>(),
      .tied_embedding = value["tiedEmbedding"].as<bool>(),
      .sliding_window = size("slidingWindow"),
  };
}

ConfigValue config_value(const Config& config) {
  val rope = val::object();
  rope.set("pairing",
           text(config.rope.pairing == RopePairing::half_split ? "half_split" : "interleaved"));
  rope.set("theta", config.rope.theta);
  rope.set("freqFactors",
           array_of(config.rope.freq_factors, [](double factor) { return val(factor); }));
  val value = val::object();
  value.set("nLayers", number(config.n_layers));
  value.set("nHeads", number(config.n_heads));
  value.set("nKvHeads", number(config.n_kv_heads));
  value.set("headDim", number(config.head_dim));
  value.set("dModel", number(config.d_model));
  value.set("dFf", number(config.d_ff));
  value.set("vocabSize", number(config.vocab_size));
  value.set("maxSeqLen", number(config.max_seq_len));
  value.set("rmsNormEps", config.rms_norm_eps);
  value.set("rope", rope);
  value.set("qkvBias", config.qkv_bias);
  value.set("qkNorm", config.qk_norm);
  value.set("tiedEmbedding", config.tied_embedding);
  value.set("slidingWindow", number(config.sliding_window));
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

Names error_code_names() { return Names(array_of(kvlens::error_code_names(), text)); }

Names stage_names() {
  val names = val::array();
#define KVLENS_STAGE_NAME(name) names.call<void>("push", text(#name));
  KVLENS_STAGES(KVLENS_STAGE_NAME)
#undef KVLENS_STAGE_NAME
  return Names(names);
}

Names work_counter_names() {
  val names = val::array();
#define KVLENS_WORK_NAME(name) names.call<void>("push", text(#name));
  KVLENS_WORK_COUNTERS(KVLENS_WORK_NAME)
#undef KVLENS_WORK_NAME
  return Names(names);
}

DTypes dtypes_value() {
  val types = val::array();
#define KVLENS_DTYPE_VALUE(name, values, bytes) \
  {                                             \
    val type = val::object();                   \
    type.set("name", text(#name));              \
    type.set("blockValues", values);            \
    type.set("blockBytes", bytes);              \
    types.call<void>("push", type);             \
  }
  KVLENS_DTYPES(KVLENS_DTYPE_VALUE)
#undef KVLENS_DTYPE_VALUE
  return DTypes(types);
}

}  // namespace kvlens::js
