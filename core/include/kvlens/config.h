// The shape of a Llama-family decoder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kvlens/error.h"
#include "kvlens/rope_spec.h"

namespace kvlens {

struct Config {
  std::size_t n_layers = 0;
  std::size_t n_heads = 0;
  std::size_t n_kv_heads = 0;  // n_heads is a multiple of it
  std::size_t head_dim = 0;    // even; need not be d_model / n_heads
  std::size_t d_model = 0;
  std::size_t d_ff = 0;
  std::size_t vocab_size = 0;
  std::size_t max_seq_len = 0;
  double rms_norm_eps = 1e-5;
  RopeSpec rope;
  bool qkv_bias = false;
  bool qk_norm = false;            // RMSNorm with its own gain on every query and key head
  bool tied_embedding = true;      // the vocabulary head is the token embedding
  std::size_t sliding_window = 0;  // positions a row sees, itself included; 0: all

  [[nodiscard]] std::size_t q_width() const noexcept { return n_heads * head_dim; }
  [[nodiscard]] std::size_t kv_width() const noexcept { return n_kv_heads * head_dim; }
  [[nodiscard]] std::size_t group_size() const noexcept { return n_heads / n_kv_heads; }
  // The first position that a row at `position` attends to.
  [[nodiscard]] std::size_t window_begin(std::size_t position) const noexcept;
};

// Calls `visit(name, fields...)` for every field of one or more configurations, in order. Whatever
// treats all fields alike uses this list.
template <class F, class... Configs>
void for_each_field(F&& visit, Configs&... configs) {
  visit("n_layers", configs.n_layers...);
  visit("n_heads", configs.n_heads...);
  visit("n_kv_heads", configs.n_kv_heads...);
  visit("head_dim", configs.head_dim...);
  visit("d_model", configs.d_model...);
  visit("d_ff", configs.d_ff...);
  visit("vocab_size", configs.vocab_size...);
  visit("max_seq_len", configs.max_seq_len...);
  visit("rms_norm_eps", configs.rms_norm_eps...);
  visit("rope", configs.rope...);
  visit("qkv_bias", configs.qkv_bias...);
  visit("qk_norm", configs.qk_norm...);
  visit("tied_embedding", configs.tied_embedding...);
  visit("sliding_window", configs.sliding_window...);
}

// Checks every field and how they go together. Errors: invalid_config (the field, its value and
// the allowed values), size_overflow (n_heads * head_dim does not fit a size_t).
[[nodiscard]] Result<void> validate(const Config& config);

// The first field that differs, floats compared by their bits. Errors: config_mismatch.
[[nodiscard]] Result<void> check_same(const Config& expected, const Config& actual);

}  // namespace kvlens
