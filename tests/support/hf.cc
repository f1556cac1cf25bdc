#include "support/hf.h"

#include <cmath>
#include <map>
#include <numbers>

#include "support/json.h"

namespace kvlens::testing {
namespace {

template <class T>
T value_or(const Json& json, const char* name, T otherwise) {
  const auto it = json.find(name);
  return it == json.end() || it->is_null() ? otherwise : it->get<T>();
}

// Recent checkpoints keep theta and the scaling in rope_parameters, older ones in rope_theta and
// rope_scaling.
RopeSpec read_rope(const Json& json, std::size_t head_dim) {
  RopeSpec rope;
  rope.pairing = RopePairing::half_split;
  Json scaling = value_or(json, "rope_parameters", value_or(json, "rope_scaling", Json::object()));
  rope.theta = value_or(scaling, "rope_theta", value_or(json, "rope_theta", 10000.0));
  const std::string type = value_or<std::string>(scaling, "rope_type",
                                                 value_or<std::string>(scaling, "type", "default"));
  if (type == "llama3") {
    rope.freq_factors = llama3_freq_factors(
        {field(scaling, "factor").get<double>(), field(scaling, "low_freq_factor").get<double>(),
         field(scaling, "high_freq_factor").get<double>(),
         field(scaling, "original_max_position_embeddings").get<double>()},
        rope.theta, head_dim);
  } else if (type == "linear") {
    rope.freq_factors.assign(head_dim / 2, field(scaling, "factor").get<double>());
  } else if (type != "default") {
    std::fprintf(stderr, "RoPE type %s is not supported\n", type.c_str());
    std::abort();
  }
  return rope;
}

Config read_config(const Json& json) {
  const auto type = field(json, "model_type").get<std::string>();
  Config config;
  config.n_layers = field(json, "num_hidden_layers").get<std::size_t>();
  config.n_heads = field(json, "num_attention_heads").get<std::size_t>();
  config.n_kv_heads = value_or(json, "num_key_value_heads", config.n_heads);
  config.d_model = field(json, "hidden_size").get<std::size_t>();
  config.head_dim = value_or(json, "head_dim", config.d_model / config.n_heads);
  config.d_ff = field(json, "intermediate_size").get<std::size_t>();
  config.vocab_size = field(json, "vocab_size").get<std::size_t>();
  config.max_seq_len = field(json, "max_position_embeddings").get<std::size_t>();
  config.rms_norm_eps = field(json, "rms_norm_eps").get<double>();
  config.rope = read_rope(json, config.head_dim);
  config.qkv_bias = type == "qwen2" || value_or(json, "attention_bias", false);
  config.qk_norm = type == "qwen3";
  config.tied_embedding = value_or(json, "tie_word_embeddings", false);
  if (type == "mistral" || value_or(json, "use_sliding_window", false)) {
    config.sliding_window = value_or(json, "sliding_window", std::size_t{0});
  }
  return config;
}

std::string kvlens_name(const std::string& name) {
  static const std::map<std::string, std::string> parts = {
      {"input_layernorm.weight", "attention_norm"},
      {"self_attn.q_proj.weight", "q_proj"},
      {"self_attn.q_proj.bias", "q_bias"},
      {"self_attn.k_proj.weight", "k_proj"},
      {"self_attn.k_proj.bias", "k_bias"},
      {"self_attn.v_proj.weight", "v_proj"},
      {"self_attn.v_proj.bias", "v_bias"},
      {"self_attn.q_norm.weight", "q_norm"},
      {"self_attn.k_norm.weight", "k_norm"},
      {"self_attn.o_proj.weight", "o_proj"},
      {"post_attention_layernorm.weight", "ffn_norm"},
      {"mlp.gate_proj.weight", "gate_proj"},
      {"mlp.up_proj.weight", "up_proj"},
      {"mlp.down_proj.weight", "down_proj"},
  };
  if (name == "model.embed_tokens.weight") return "token_embedding";
  if (name == "model.norm.weight") return "final_norm";
  if (name == "lm_head.weight") return "lm_head";
  const std::string prefix = "model.layers.";
  const std::size_t dot = name.find('.', prefix.size());
  if (name.starts_with(prefix) && dot != std::string::npos) {
    const auto part = parts.find(name.substr(dot + 1));
    if (part != parts.end()) {
      return "layers." + name.substr(prefix.size(), dot - prefix.size()) + "." + part->second;
    }
  }
  std::fprintf(stderr, "checkpoint parameter %s has no kvlens name\n", name.c_str());
  std::abort();
}

}  // namespace

std::vector<double> llama3_freq_factors(const Llama3Scaling& scaling, double theta,
                                        std::size_t head_dim) {
  const double original = scaling.original_max_position_embeddings;
  std::vector<double> factors;
  for (std::size_t i = 0; i < head_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    const double frequency = 1.0 / std::pow(theta, exponent);
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    double scaled = frequency;
    if (wavelength > original / scaling.low_freq_factor) {
      scaled = frequency / scaling.factor;
    } else if (wavelength >= original / scaling.high_freq_factor) {
      const double smooth = (original / wavelength - scaling.low_freq_factor) /
                            (scaling.high_freq_factor - scaling.low_freq_factor);
      scaled = (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
    }
    factors.push_back(frequency / scaled);
  }
  return factors;
}

HfCase read_hf_case(const std::filesystem::path& folder) {
  HfCase hf;
  hf.path = folder;
  hf.name = folder.filename().string();
  hf.config = read_config(read_json(folder / "config.json"));
  hf.tensors = read_safetensors(folder / "model.safetensors");
  for (StoredTensor& tensor : hf.tensors) tensor.name = kvlens_name(tensor.name);
  const Json golden = read_json(folder / "golden.json");
  hf.tokens = ids(field(golden, "tokens"));
  hf.logits = field(golden, "logits").get<std::vector<std::vector<double>>>();
  hf.attentions =
      field(golden, "attentions").get<std::vector<std::vector<std::vector<std::vector<double>>>>>();
  const Json& greedy = field(golden, "greedy");
  hf.greedy_prompt = ids(field(greedy, "prompt"));
  hf.greedy_output = ids(field(greedy, "output"));
  hf.smallest_greedy_gap = field(greedy, "smallest_top1_top2_gap").get<double>();
  return hf;
}

std::vector<HfCase> read_hf_cases(const std::vector<std::filesystem::path>& folders) {
  std::vector<HfCase> cases;
  for (const auto& folder : folders) cases.push_back(read_hf_case(folder));
  return cases;
}

}  // namespace kvlens::testing
