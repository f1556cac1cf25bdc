#include "support/course.h"

#include <map>

#include "support/json.h"

namespace kvlens::testing {
namespace {

Config read_config(const Json& json) {
  Config config;
  config.vocab_size = field(json, "vocabulary_size").get<std::size_t>();
  config.d_model = field(json, "model_width").get<std::size_t>();
  config.n_heads = field(json, "heads").get<std::size_t>();
  config.n_kv_heads = config.n_heads;
  config.head_dim = config.d_model / config.n_heads;
  config.d_ff = field(json, "feed_forward_width").get<std::size_t>();
  config.n_layers = field(json, "layers").get<std::size_t>();
  config.max_seq_len = field(json, "max_positions").get<std::size_t>();
  config.rms_norm_eps = field(json, "rms_epsilon").get<double>();
  config.rope.pairing = RopePairing::interleaved;
  config.rope.theta = field(json, "rope_base").get<double>();
  config.tied_embedding = true;
  return config;
}

// "blocks.3.ffn.gate.weight" is layers.3.gate_proj.
std::string kvlens_name(const std::string& name) {
  static const std::map<std::string, std::string> parts = {
      {"attention_norm.gain", "attention_norm"}, {"attention.query.weight", "q_proj"},
      {"attention.key.weight", "k_proj"},        {"attention.value.weight", "v_proj"},
      {"attention.output.weight", "o_proj"},     {"ffn_norm.gain", "ffn_norm"},
      {"ffn.gate.weight", "gate_proj"},          {"ffn.up.weight", "up_proj"},
      {"ffn.down.weight", "down_proj"},
  };
  if (name == "token_embedding.weight") return "token_embedding";
  if (name == "final_norm.gain") return "final_norm";
  const std::string prefix = "blocks.";
  const std::size_t dot = name.find('.', prefix.size());
  if (name.starts_with(prefix) && dot != std::string::npos) {
    const auto part = parts.find(name.substr(dot + 1));
    if (part != parts.end()) {
      return "layers." + name.substr(prefix.size(), dot - prefix.size()) + "." + part->second;
    }
  }
  std::fprintf(stderr, "course parameter %s has no kvlens name\n", name.c_str());
  std::abort();
}

NamedValues read_parameter(const Json& json) {
  NamedValues parameter;
  parameter.name = kvlens_name(field(json, "name").get<std::string>());
  const auto shape = field(json, "shape").get<std::vector<std::size_t>>();
  parameter.values = numbers(field(json, "values"));
  if (shape.size() == 2 && parameter.name != "token_embedding") {
    // The file has [inputs, outputs].
    std::vector<double> transposed(parameter.values.size());
    for (std::size_t in = 0; in < shape[0]; ++in) {
      for (std::size_t out = 0; out < shape[1]; ++out) {
        transposed[out * shape[0] + in] = parameter.values[in * shape[1] + out];
      }
    }
    parameter.values = std::move(transposed);
  }
  return parameter;
}

CourseWork read_work(const Json& json, const char* score_values) {
  CourseWork work;
  work.token_forwards = json.value("token_forwards", std::uint64_t{0});
  work.prefill_tokens = field(json, "prefill_tokens").get<std::uint64_t>();
  work.decode_tokens = field(json, "decode_tokens").get<std::uint64_t>();
  work.cache_appends = field(json, "cache_appends").get<std::uint64_t>();
  work.qkv_projection_rows = field(json, "qkv_projection_rows").get<std::uint64_t>();
  work.attention_score_values = field(json, score_values).get<std::uint64_t>();
  return work;
}

CourseStep read_step(const Json& json) {
  CourseStep step;
  step.is_prefill = field(json, "call").get<std::string>() == "prefill";
  step.tokens = ids(field(json, "tokens"));
  step.position = field(json, "position").get<std::size_t>();
  step.cache_len = field(json, "cache_len").get<std::size_t>();
  step.row_attention_score_values = field(json, "row_attention_score_values").get<std::uint64_t>();
  step.logits = numbers(field(json, "logits"));
  step.complete_prefix_last_logits = numbers(field(json, "complete_prefix_last_logits"));
  step.complete_prefix_attention_score_values =
      field(json, "complete_prefix_attention_score_values").get<std::uint64_t>();
  step.work = read_work(field(json, "work"), "attention_score_values");
  step.attention_last_row =
      field(json, "attention_last_row").get<std::vector<std::vector<std::vector<double>>>>();
  for (const Json& layer : field(json, "layers")) {
    step.layers.push_back({numbers(field(layer, "keys")), numbers(field(layer, "values"))});
  }
  return step;
}

StopReason read_stop(const std::string& name) {
  if (name == "eos") return StopReason::eos;
  if (name == "token-limit") return StopReason::token_limit;
  if (name == "context-limit") return StopReason::context_limit;
  std::fprintf(stderr, "unknown stop reason %s\n", name.c_str());
  std::abort();
}

CourseGeneration read_generation(const Json& json) {
  CourseGeneration generation;
  const Json& mode = field(json, "mode");
  generation.sampling.greedy = field(mode, "kind").get<std::string>() == "greedy";
  if (!generation.sampling.greedy) {
    generation.sampling.temperature = field(mode, "temperature").get<double>();
    generation.sampling.top_k = field(mode, "top_k").get<std::size_t>();
  }
  generation.rng_seed = hex64(field(json, "rng_seed"));
  generation.max_new_tokens = field(json, "max_new_tokens").get<std::size_t>();
  const Json& eos = field(json, "eos_token");
  if (!eos.is_null()) generation.eos_token = eos.get<std::uint32_t>();
  generation.generated = ids(field(json, "generated"));
  generation.stop = read_stop(field(json, "stop").get<std::string>());
  generation.final_cache_len = field(json, "final_cache_len").get<std::size_t>();
  generation.rng_state_after = hex64(field(json, "rng_state_after"));
  generation.work = read_work(field(json, "work"), "cached_attention_score_values");
  generation.complete_prefix_attention_score_values =
      field(field(json, "work"), "complete_prefix_attention_score_values").get<std::uint64_t>();
  for (const Json& step : field(json, "steps")) {
    CourseDraw draw;
    draw.prefix_length = field(step, "prefix_length").get<std::size_t>();
    draw.token = field(step, "token_id").get<std::uint32_t>();
    const Json& unit = field(step, "unit_draw");
    if (!unit.is_null()) draw.unit_draw = unit.get<double>();
    draw.interval_start = field(step, "interval_start").get<double>();
    draw.interval_end = field(step, "interval_end").get<double>();
    generation.steps.push_back(draw);
  }
  return generation;
}

}  // namespace

CourseCase read_course_case(const std::filesystem::path& path) {
  const Json json = read_json(path);
  CourseCase course;
  course.name = field(json, "name").get<std::string>();
  course.config = read_config(field(json, "config"));
  course.seed = field(json, "seed").get<std::uint64_t>();
  course.rng_state_after_init = hex64(field(json, "rng_state_after_init"));
  for (const Json& parameter : field(json, "parameters")) {
    course.parameters.push_back(read_parameter(parameter));
  }
  for (const Json& step : field(json, "steps")) course.steps.push_back(read_step(step));
  for (const Json& generation : field(json, "generations")) {
    course.generations.push_back(read_generation(generation));
  }
  return course;
}

std::vector<CourseCase> read_course_cases(const std::vector<std::filesystem::path>& paths) {
  std::vector<CourseCase> cases;
  for (const auto& path : paths) cases.push_back(read_course_case(path));
  return cases;
}

}  // namespace kvlens::testing
