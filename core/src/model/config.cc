#include "kvlens/config.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/try.h"
#include "ops/attend.h"

namespace kvlens {
namespace {

bool same(double a, double b) noexcept {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::unexpected<Error> invalid(std::string_view field, const std::string& value,
                               std::string_view allowed) {
  return fail(ErrorCode::invalid_config,
              FieldContext{std::string(field), value, std::string(allowed)},
              std::string(field) + " is " + value + ", allowed is " + std::string(allowed));
}

Result<void> check_dimension(std::string_view field, std::size_t value) {
  // One bound for every dimension keeps products of two of them inside 64 bits.
  constexpr std::size_t limit = std::size_t{1} << 31U;
  if (value == 0 || value > limit) return invalid(field, std::to_string(value), "1 to 2147483648");
  return {};
}

Result<void> check_positive(std::string_view field, double value) {
  if (!std::isfinite(value) || value <= 0) {
    return invalid(field, std::to_string(value), "a finite number above 0");
  }
  return {};
}

std::unexpected<Error> differs(std::string_view field, const std::string& expected,
                               const std::string& actual) {
  return fail(
      ErrorCode::config_mismatch, FieldContext{std::string(field), actual, expected},
      "cache was made for " + std::string(field) + " " + expected + ", the model has " + actual);
}

Result<void> check_field(std::string_view field, std::size_t expected, std::size_t actual) {
  if (expected == actual) return {};
  return differs(field, std::to_string(expected), std::to_string(actual));
}

Result<void> check_field(std::string_view field, double expected, double actual) {
  if (same(expected, actual)) return {};
  return differs(field, std::to_string(expected), std::to_string(actual));
}

Result<void> check_field(std::string_view field, bool expected, bool actual) {
  if (expected == actual) return {};
  return differs(field, expected ? "true" : "false", actual ? "true" : "false");
}

Result<void> check_field(std::string_view, const RopeSpec& expected, const RopeSpec& actual) {
  KVLENS_CHECK(check_field("rope_theta", expected.theta, actual.theta));
  if (expected.pairing != actual.pairing) {
    const auto name = [](RopePairing pairing) {
      return pairing == RopePairing::interleaved ? "interleaved" : "half_split";
    };
    return differs("rope_pairing", name(expected.pairing), name(actual.pairing));
  }
  if (!expected.same_bits(actual)) {
    return differs("rope_freq_factors", "as captured", "other values");
  }
  return {};
}

}  // namespace

std::size_t Config::window_begin(std::size_t position) const noexcept {
  return ops::window_begin(position, sliding_window);
}

Result<void> validate(const Config& config) {
  KVLENS_CHECK(check_dimension("n_layers", config.n_layers));
  KVLENS_CHECK(check_dimension("n_heads", config.n_heads));
  KVLENS_CHECK(check_dimension("n_kv_heads", config.n_kv_heads));
  KVLENS_CHECK(check_dimension("head_dim", config.head_dim));
  KVLENS_CHECK(check_dimension("d_model", config.d_model));
  KVLENS_CHECK(check_dimension("d_ff", config.d_ff));
  KVLENS_CHECK(check_dimension("vocab_size", config.vocab_size));
  KVLENS_CHECK(check_dimension("max_seq_len", config.max_seq_len));
  if (config.n_heads % config.n_kv_heads != 0) {
    return invalid("n_kv_heads", std::to_string(config.n_kv_heads),
                   "a divisor of n_heads " + std::to_string(config.n_heads));
  }
  if (config.head_dim % 2 != 0) {
    return invalid("head_dim", std::to_string(config.head_dim), "an even number");
  }
  KVLENS_CHECK(check_positive("rms_norm_eps", config.rms_norm_eps));
  KVLENS_CHECK(check_positive("rope_theta", config.rope.theta));
  const std::size_t n_factors = config.rope.freq_factors.size();
  if (n_factors != 0 && n_factors != config.head_dim / 2) {
    return invalid("rope_freq_factors", std::to_string(n_factors) + " values",
                   "none or head_dim / 2 = " + std::to_string(config.head_dim / 2));
  }
  for (const double factor : config.rope.freq_factors) {
    KVLENS_CHECK(check_positive("rope_freq_factors", factor));
  }
  // Whether a parameter fits the address space depends on its storage type: ModelBuilder checks
  // that. Here a width must only be a number.
  if (config.n_heads > std::numeric_limits<std::size_t>::max() / config.head_dim) {
    return fail(ErrorCode::size_overflow, NoContext{},
                "n_heads x head_dim does not fit the address space");
  }
  return {};
}

Result<void> check_same(const Config& expected, const Config& actual) {
  Result<void> result;
  for_each_field(
      [&](std::string_view name, const auto& a, const auto& b) {
        if (result) result = check_field(name, a, b);
      },
      expected, actual);
  return result;
}

}  // namespace kvlens
