// What makes a configuration valid, and two of them the same.

#include "kvlens/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect.h"
#include "support/models.h"

namespace kvlens {
namespace {

using testing::expect_error;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(ConfigTest, TheVariantsAreValid) {
  for (const auto& [name, config] : testing::config_variants()) {
    EXPECT_TRUE(testing::succeeded(validate(config))) << name;
  }
}

TEST(ConfigTest, EachFieldOutOfItsRangeIsNamed) {
  const std::vector<std::pair<const char*, void (*)(Config&)>> changes = {
      {"n_layers", [](Config& c) { c.n_layers = 0; }},
      {"n_heads", [](Config& c) { c.n_heads = 0; }},
      {"n_kv_heads", [](Config& c) { c.n_kv_heads = 0; }},
      {"n_kv_heads", [](Config& c) { c.n_kv_heads = 4; }},
      {"head_dim", [](Config& c) { c.head_dim = 0; }},
      {"head_dim", [](Config& c) { c.head_dim = 3; }},
      {"d_model", [](Config& c) { c.d_model = 0; }},
      {"d_ff", [](Config& c) { c.d_ff = 0; }},
      {"vocab_size", [](Config& c) { c.vocab_size = 0; }},
      {"max_seq_len", [](Config& c) { c.max_seq_len = 0; }},
      {"rms_norm_eps", [](Config& c) { c.rms_norm_eps = 0; }},
      {"rms_norm_eps", [](Config& c) { c.rms_norm_eps = -1e-5; }},
      {"rms_norm_eps", [](Config& c) { c.rms_norm_eps = nan; }},
      {"rope_theta", [](Config& c) { c.rope.theta = 0; }},
      {"rope_theta", [](Config& c) { c.rope.theta = infinity; }},
      {"rope_freq_factors", [](Config& c) { c.rope.freq_factors = {1.0}; }},
      {"rope_freq_factors", [](Config& c) { c.rope.freq_factors = {1.0, 0.0}; }},
      {"rope_freq_factors", [](Config& c) { c.rope.freq_factors = {1.0, nan}; }},
  };
  for (const auto& [field, change] : changes) {
    Config config = testing::tiny_config();
    change(config);
    const auto context = expect_error<FieldContext>(validate(config), ErrorCode::invalid_config);
    EXPECT_EQ(context.field, field);
    EXPECT_FALSE(context.value.empty());
    EXPECT_FALSE(context.allowed.empty());
  }
}

TEST(ConfigTest, TheMessageSaysTheFieldItsValueAndWhatIsAllowed) {
  Config config = testing::tiny_config();
  config.n_kv_heads = 3;
  config.n_heads = 4;
  expect_error<FieldContext>(validate(config), ErrorCode::invalid_config,
                             "n_kv_heads is 3, allowed is a divisor of n_heads 4");
}

TEST(ConfigTest, AMatrixIsNotJudgedByItsNumberOfValues) {
  Config config = testing::tiny_config();
  config.d_model = config.d_ff = config.vocab_size = std::size_t{1} << 31U;
  EXPECT_TRUE(testing::succeeded(validate(config)));
}

TEST(ConfigTest, TheWidthOfAllHeadsMustBeANumber) {
  Config config = testing::tiny_config();
  config.head_dim = 2;
  config.n_heads = config.n_kv_heads = (std::size_t{1} << 31U) - 1;
  EXPECT_TRUE(testing::succeeded(validate(config)));
  config.n_heads = config.n_kv_heads = std::size_t{1} << 31U;  // 2^32 values: too many for 32 bits
  if (sizeof(std::size_t) == 4) {
    expect_error<NoContext>(validate(config), ErrorCode::size_overflow,
                            "n_heads x head_dim does not fit the address space");
  } else {
    EXPECT_TRUE(testing::succeeded(validate(config)));
  }
}

TEST(ConfigTest, AnEpsilonOfAnotherBitIsAnotherConfiguration) {
  Config other = testing::tiny_config();
  EXPECT_TRUE(testing::succeeded(check_same(testing::tiny_config(), other)));
  other.rms_norm_eps = std::nextafter(other.rms_norm_eps, 1.0);
  const auto context = expect_error<FieldContext>(check_same(testing::tiny_config(), other),
                                                  ErrorCode::config_mismatch);
  EXPECT_EQ(context.field, "rms_norm_eps");
}

TEST(ConfigTest, AWindowBeginsSoThatARowSeesItselfAndTheRowsBefore) {
  Config config = testing::tiny_config();
  EXPECT_EQ(config.window_begin(11), 0U);
  config.sliding_window = 5;
  EXPECT_EQ(config.window_begin(4), 0U);
  EXPECT_EQ(config.window_begin(5), 1U);
  EXPECT_EQ(config.window_begin(11), 7U);
  config.sliding_window = 1;
  EXPECT_EQ(config.window_begin(0), 0U);
  EXPECT_EQ(config.window_begin(6), 6U);
}

TEST(ConfigTest, WidthsFollowHeadsAndNotTheModelsWidth) {
  Config config = testing::tiny_config();
  config.n_heads = 6;
  EXPECT_EQ(config.q_width(), 24U);
  EXPECT_EQ(config.kv_width(), 8U);
  EXPECT_EQ(config.group_size(), 3U);
}

}  // namespace
}  // namespace kvlens
