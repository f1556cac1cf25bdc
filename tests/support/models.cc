#include "support/models.h"

#include <bit>
#include <cstring>
#include <numeric>
#include <sstream>

namespace kvlens::testing {
namespace {

template <class Word>
void append_word(std::vector<std::byte>& bytes, Word word) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(Word));
  std::memcpy(bytes.data() + at, &word, sizeof(Word));
}

// Round to nearest, ties to even, by the bits of the float; values here are finite.
std::uint16_t to_bf16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

// Random sign and mantissa; magnitudes are in [2^(low - 15), 2^(high - 14)).
std::uint16_t random_half(SplitMix64& rng, std::size_t low_exponent, std::size_t high_exponent) {
  const std::size_t exponent = random_size(rng, low_exponent, high_exponent);
  const std::uint64_t bits = rng.next();
  return static_cast<std::uint16_t>(((bits & 1U) << 15U) | (exponent << 10U) |
                                    ((bits >> 1U) & 0x3ffU));
}

// Where a block keeps its f16 scales. Every other byte may be anything.
std::vector<std::size_t> scale_offsets(DType dtype) {
  switch (dtype) {
    case DType::q8_0:
    case DType::q4_0:
    case DType::q5_0:
      return {0};
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k:
      return {0, 2};
    case DType::q2_k:
      return {80, 82};
    case DType::q3_k:
      return {108};
    case DType::q6_k:
      return {208};
    default:
      return {};
  }
}

bool is_gain(const std::string& name) { return name.ends_with("norm"); }

}  // namespace

std::vector<std::byte> encode(std::span<const double> values, DType dtype) {
  std::vector<std::byte> bytes;
  bytes.reserve(values.size() * sizeof(double));
  for (const double value : values) {
    switch (dtype) {
      case DType::f64:
        append_word(bytes, value);
        break;
      case DType::f32:
        append_word(bytes, static_cast<float>(value));
        break;
      case DType::bf16:
        append_word(bytes, to_bf16(value));
        break;
      default:
        std::fprintf(stderr, "encode has no such type\n");
        std::abort();
    }
  }
  return bytes;
}

std::vector<std::byte> random_matrix(std::size_t rows, std::size_t cols, DType dtype,
                                     SplitMix64& rng) {
  if (dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16) {
    std::vector<double> values(rows * cols);
    for (double& value : values) value = 2.0 * rng.unit() - 1.0;
    return encode(values, dtype);
  }
  std::vector<std::byte> bytes;
  if (dtype == DType::f16) {
    for (std::size_t i = 0; i < rows * cols; ++i) append_word(bytes, random_half(rng, 8, 14));
    return bytes;
  }
  const DTypeInfo info = dtype_info(dtype);
  bytes.resize(rows * cols / info.block_values * info.block_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next() >> 56U);
  // Sub-blocks of K-quants multiply the scale by up to 63, so theirs is smaller.
  const std::size_t exponent = info.block_values == 256 ? 2 : 6;
  for (std::size_t at = 0; at < bytes.size(); at += info.block_bytes) {
    for (const std::size_t offset : scale_offsets(dtype)) {
      const std::uint16_t scale = random_half(rng, exponent, exponent + 2);
      std::memcpy(bytes.data() + at + offset, &scale, sizeof(scale));
    }
  }
  return bytes;
}

std::shared_ptr<Model> model_of(const Config& config, std::span<const NamedValues> parameters,
                                DType dtype) {
  ModelBuilder builder = must(ModelBuilder::create(config));
  for (const NamedValues& parameter : parameters) {
    must(builder.add(parameter.name, dtype, encode(parameter.values, dtype)));
  }
  return must(builder.finish());
}

std::shared_ptr<Model> random_model(const Config& config, SplitMix64& rng, DType matrices) {
  ModelBuilder builder = must(ModelBuilder::create(config));
  const std::vector<ParameterSpec> specs = builder.specs();
  for (const ParameterSpec& spec : specs) {
    if (!spec.is_vector) {
      must(builder.add(spec.name, matrices, random_matrix(spec.rows, spec.cols, matrices, rng)));
      continue;
    }
    std::vector<double> values(spec.cols);
    for (double& value : values) value = rng.unit() + (is_gain(spec.name) ? 0.5 : -0.5);
    const DType dtype = matrices == DType::f64 ? DType::f64 : DType::f32;
    must(builder.add(spec.name, dtype, encode(values, dtype)));
  }
  return must(builder.finish());
}

Config tiny_config() {
  Config config;
  config.n_layers = 2;
  config.n_heads = 2;
  config.n_kv_heads = 2;
  config.head_dim = 4;
  config.d_model = 6;
  config.d_ff = 5;
  config.vocab_size = 7;
  config.max_seq_len = 12;
  return config;
}

std::vector<NamedConfig> config_variants() {
  std::vector<NamedConfig> variants;
  const auto add = [&](const char* name, auto change) {
    Config config = tiny_config();
    change(config);
    variants.push_back({name, config});
  };
  add("mha", [](Config&) {});
  add("gqa", [](Config& c) { c.n_heads = 6; });
  add("one_kv_head", [](Config& c) { c.n_heads = 3, c.n_kv_heads = 1; });
  add("half_split", [](Config& c) { c.rope.pairing = RopePairing::half_split; });
  add("freq_factors", [](Config& c) { c.rope.freq_factors = {1.0, 8.0}; });
  add("qkv_bias", [](Config& c) { c.qkv_bias = true; });
  add("qk_norm", [](Config& c) { c.qk_norm = true; });
  add("untied", [](Config& c) { c.tied_embedding = false; });
  add("sliding_window", [](Config& c) { c.sliding_window = 3; });
  add("window_of_one", [](Config& c) { c.sliding_window = 1; });
  add("everything", [](Config& c) {
    c.n_heads = 4;
    c.rope = {RopePairing::half_split, 500.0, {1.0, 2.5}};
    c.qkv_bias = true;
    c.qk_norm = true;
    c.tied_embedding = false;
    c.sliding_window = 4;
  });
  return variants;
}

std::size_t random_size(SplitMix64& rng, std::size_t low, std::size_t high) {
  return low + static_cast<std::size_t>(rng.next() % (high - low + 1));
}

Config random_config(SplitMix64& rng, std::size_t block_values) {
  const auto chance = [&](std::size_t one_in) { return random_size(rng, 1, one_in) == 1; };
  const std::size_t block = block_values;
  Config config;
  config.n_layers = random_size(rng, 1, 3);
  if (block == 1) {
    config.n_kv_heads = random_size(rng, 1, 3);
    config.n_heads = config.n_kv_heads * random_size(rng, 1, 4);
    config.head_dim = 2 * random_size(rng, 1, 6);
    config.d_model = random_size(rng, 1, 21);
    config.d_ff = random_size(rng, 1, 25);
  } else {
    // Widths a multiple of the block, and not all the same.
    config.n_kv_heads = std::size_t{1} << random_size(rng, 0, 1);
    config.n_heads = config.n_kv_heads * (std::size_t{1} << random_size(rng, 0, 1));
    config.head_dim = block / config.n_kv_heads;
    config.d_model = block * (block < 256 ? random_size(rng, 1, 2) : 1);
    config.d_ff = block * (block < 256 ? random_size(rng, 1, 3) : 1);
    config.n_layers = block < 256 ? config.n_layers : 1;
  }
  config.vocab_size = random_size(rng, 2, 23);
  config.max_seq_len = random_size(rng, 2, 14);
  config.rms_norm_eps = chance(2) ? 1e-5 : 1e-6;
  config.rope.pairing = chance(2) ? RopePairing::half_split : RopePairing::interleaved;
  config.rope.theta = chance(2) ? 10000.0 : 100.0;
  if (chance(3)) {
    for (std::size_t i = 0; i < config.head_dim / 2; ++i) {
      config.rope.freq_factors.push_back(1.0 + 7.0 * rng.unit());
    }
  }
  config.qkv_bias = chance(3);
  config.qk_norm = chance(3);
  config.tied_embedding = chance(2);
  if (chance(2)) config.sliding_window = random_size(rng, 1, config.max_seq_len);
  return config;
}

std::string describe(const Config& config) {
  std::ostringstream out;
  out << config.n_layers << " layers, " << config.n_heads << "/" << config.n_kv_heads
      << " heads of " << config.head_dim << ", d_model " << config.d_model << ", d_ff "
      << config.d_ff << ", vocab " << config.vocab_size << ", max_seq_len " << config.max_seq_len
      << (config.rope.pairing == RopePairing::interleaved ? ", interleaved" : ", half_split")
      << (config.rope.freq_factors.empty() ? "" : ", freq_factors")
      << (config.qkv_bias ? ", bias" : "") << (config.qk_norm ? ", qk_norm" : "")
      << (config.tied_embedding ? "" : ", untied") << ", window " << config.sliding_window;
  return out.str();
}

std::vector<std::uint32_t> random_tokens(SplitMix64& rng, std::size_t count,
                                         std::size_t vocab_size) {
  std::vector<std::uint32_t> tokens(count);
  for (std::uint32_t& token : tokens) {
    token = static_cast<std::uint32_t>(rng.next() % vocab_size);
  }
  return tokens;
}

}  // namespace kvlens::testing
