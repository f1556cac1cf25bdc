// Building a model one parameter at a time, reading it, and changing a parameter.

#include "kvlens/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "support/expect.h"
#include "support/models.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::must;

std::vector<std::byte> zeros(const ParameterSpec& spec, DType dtype) {
  return std::vector<std::byte>(spec.rows * stored_bytes(dtype, spec.cols));
}

TEST(ParameterSpecsTest, AreInTheDocumentedOrderAndShape) {
  Config config = testing::tiny_config();
  config.n_layers = 1;
  config.n_kv_heads = 1;
  const auto listed = [](const Config& c) {
    std::vector<std::string> lines;
    for (const ParameterSpec& spec : parameter_specs(c)) {
      lines.push_back(spec.name + " " + std::to_string(spec.rows) + "x" +
                      std::to_string(spec.cols) + (spec.is_vector ? " vector" : ""));
    }
    return lines;
  };
  EXPECT_EQ(listed(config),
            (std::vector<std::string>{
                "token_embedding 7x6", "layers.0.attention_norm 1x6 vector", "layers.0.q_proj 8x6",
                "layers.0.k_proj 4x6", "layers.0.v_proj 4x6", "layers.0.o_proj 6x8",
                "layers.0.ffn_norm 1x6 vector", "layers.0.gate_proj 5x6", "layers.0.up_proj 5x6",
                "layers.0.down_proj 6x5", "final_norm 1x6 vector"}));
  config.qkv_bias = config.qk_norm = true;
  config.tied_embedding = false;
  EXPECT_EQ(listed(config),
            (std::vector<std::string>{
                "token_embedding 7x6", "layers.0.attention_norm 1x6 vector", "layers.0.q_proj 8x6",
                "layers.0.q_bias 1x8 vector", "layers.0.k_proj 4x6", "layers.0.k_bias 1x4 vector",
                "layers.0.v_proj 4x6", "layers.0.v_bias 1x4 vector", "layers.0.q_norm 1x4 vector",
                "layers.0.k_norm 1x4 vector", "layers.0.o_proj 6x8", "layers.0.ffn_norm 1x6 vector",
                "layers.0.gate_proj 5x6", "layers.0.up_proj 5x6", "layers.0.down_proj 6x5",
                "final_norm 1x6 vector", "lm_head 7x6"}));
}

// What allocating `name` as `dtype` fails with when there is no memory at all.
Error without_memory(const Config& config, std::string_view name, DType dtype) {
  ModelBuilder builder = must(ModelBuilder::create(config));
  memory::fail_after(0);
  auto bytes = builder.allocate(name, dtype);
  memory::clear_failure();
  return bytes ? Error{} : std::move(bytes).error();
}

TEST(ModelBuilderSizeTest, AMatrixOverflowsByTheBytesOfItsTypeAndNotARowEarlier) {
  Config config = testing::tiny_config();
  const std::size_t longest = std::size_t{1} << 31U;  // of a dimension
  config.d_model = sizeof(std::size_t) == 8 ? longest : std::size_t{1} << 20U;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::q8_0,
                            DType::q4_0, DType::q4_k, DType::q2_k}) {
    const std::string type(dtype_info(dtype).name);
    const std::size_t row_bytes = stored_bytes(dtype, config.d_model);
    config.vocab_size = std::min(longest, memory::largest_object / row_bytes);
    const Error fits = without_memory(config, "token_embedding", dtype);
    ASSERT_EQ(fits.code, ErrorCode::out_of_memory) << type;
    EXPECT_EQ(std::get<BytesContext>(fits.context).bytes, config.vocab_size * row_bytes) << type;
    if (config.vocab_size == longest) continue;  // no configuration has more
    ++config.vocab_size;
    const Error overflows = without_memory(config, "token_embedding", dtype);
    EXPECT_EQ(overflows.code, ErrorCode::size_overflow) << type;
    EXPECT_EQ(overflows.message, "token_embedding of " + std::to_string(config.vocab_size) + " x " +
                                     std::to_string(config.d_model) + " values as " + type +
                                     " does not fit the address space");
  }
}

TEST(ModelBuilderSizeTest, EmbeddingsOfLargeModelsAreAskedForWithTheirStoredBytes) {
  struct Embedding {
    std::size_t vocab_size, d_model;
    DType dtype;
    std::uint64_t bytes;
  };
  for (const auto& [vocab_size, d_model, dtype, bytes] :
       {Embedding{151'936, 2048, DType::q8_0, 330'612'736},  // Qwen3-1.7B
        Embedding{128'256, 3072, DType::q8_0, 418'627'584},  // Llama-3.2-3B
        Embedding{128'256, 3072, DType::f32, 1'576'009'728},
        Embedding{262'144, 5376, DType::q4_0, 792'723'456}}) {  // more than 2^30 values
    Config config = testing::tiny_config();
    config.vocab_size = vocab_size;
    config.d_model = d_model;
    const Error error = without_memory(config, "token_embedding", dtype);
    ASSERT_EQ(error.code, ErrorCode::out_of_memory);
    EXPECT_EQ(std::get<BytesContext>(error.context).bytes, bytes);
  }
}

class ModelBuilderTest : public ::testing::Test {
 protected:
  [[nodiscard]] ParameterSpec spec(std::string_view name) const {
    return *std::ranges::find(builder_.specs(), name, &ParameterSpec::name);
  }
  void add_all_but(std::string_view left_out) {
    const auto specs = builder_.specs();
    for (const ParameterSpec& one : specs) {
      if (one.name != left_out) must(builder_.add(one.name, DType::f32, zeros(one, DType::f32)));
    }
  }
  ModelBuilder builder_ = must(ModelBuilder::create(testing::tiny_config()));
};

TEST_F(ModelBuilderTest, AnInvalidConfigurationHasNoBuilder) {
  Config config = testing::tiny_config();
  config.head_dim = 5;
  expect_error<FieldContext>(ModelBuilder::create(config), ErrorCode::invalid_config);
}

TEST_F(ModelBuilderTest, FinishNamesTheFirstParameterThatIsMissingAndCanBeTriedAgain) {
  add_all_but("layers.1.up_proj");
  const auto context = expect_error<NameContext>(builder_.finish(), ErrorCode::missing_parameter,
                                                 "parameter \"layers.1.up_proj\" is missing");
  EXPECT_EQ(context.name, "layers.1.up_proj");
  must(builder_.add("layers.1.up_proj", DType::f64, zeros(spec("layers.1.up_proj"), DType::f64)));
  const auto model = must(builder_.finish());
  EXPECT_EQ(model->parameters().size(), builder_.specs().size());
  EXPECT_EQ(model->find("layers.1.up_proj")->dtype, DType::f64);
}

TEST_F(ModelBuilderTest, AllocatedButNotSealedIsMissing) {
  add_all_but("final_norm");
  std::ranges::fill(must(builder_.allocate("final_norm", DType::f32)), std::byte{0});
  EXPECT_EQ(expect_error<NameContext>(builder_.finish(), ErrorCode::missing_parameter).name,
            "final_norm");
  must(builder_.seal("final_norm"));
  EXPECT_TRUE(testing::succeeded(builder_.finish()));
}

TEST_F(ModelBuilderTest, AfterFinishTheBuilderIsEmpty) {
  add_all_but("");
  must(builder_.finish());
  EXPECT_EQ(expect_error<NameContext>(builder_.finish(), ErrorCode::missing_parameter).name,
            "token_embedding");
}

TEST_F(ModelBuilderTest, UnknownNamesAreRefusedEverywhere) {
  const std::vector<std::byte> none;
  const auto added = expect_error<NameContext>(builder_.add("lm_head", DType::f32, none),
                                               ErrorCode::unknown_parameter);
  EXPECT_EQ(added.name, "lm_head");
  expect_error<NameContext>(builder_.allocate("layers.2.q_proj", DType::f32),
                            ErrorCode::unknown_parameter);
  expect_error<NameContext>(builder_.seal(""), ErrorCode::unknown_parameter);
}

TEST_F(ModelBuilderTest, AParameterIsGivenOnce) {
  const auto bytes = zeros(spec("final_norm"), DType::f32);
  std::ranges::fill(must(builder_.allocate("final_norm", DType::f32)), std::byte{0});
  expect_error<NameContext>(builder_.allocate("final_norm", DType::f32),
                            ErrorCode::duplicate_parameter);
  expect_error<NameContext>(builder_.add("final_norm", DType::f32, bytes),
                            ErrorCode::duplicate_parameter);
  must(builder_.seal("final_norm"));
  expect_error<NameContext>(builder_.seal("final_norm"), ErrorCode::duplicate_parameter);
  const auto context = expect_error<NameContext>(builder_.add("final_norm", DType::f32, bytes),
                                                 ErrorCode::duplicate_parameter);
  EXPECT_EQ(context.name, "final_norm");
}

TEST_F(ModelBuilderTest, SealNeedsMemoryToSeal) {
  expect_error<NameContext>(builder_.seal("final_norm"), ErrorCode::missing_parameter);
}

TEST_F(ModelBuilderTest, BytesOfAnotherSizeAreRefused) {
  const std::vector<std::byte> bytes(23);
  const auto context = expect_error<MismatchContext>(builder_.add("final_norm", DType::f32, bytes),
                                                     ErrorCode::parameter_size_mismatch,
                                                     "final_norm takes 24 bytes, got 23");
  EXPECT_EQ(context.expected, 24U);
  EXPECT_EQ(context.actual, 23U);
  must(builder_.add("final_norm", DType::f32, zeros(spec("final_norm"), DType::f32)));
}

TEST_F(ModelBuilderTest, AShapeIsOutputsByInputsAndATransposeIsRefused) {
  using Shape = std::vector<std::uint64_t>;
  EXPECT_TRUE(testing::succeeded(builder_.check_shape("layers.0.q_proj", Shape{8, 6})));
  EXPECT_TRUE(testing::succeeded(builder_.check_shape("final_norm", Shape{6})));
  const auto context = expect_error<ShapeContext>(
      builder_.check_shape("layers.0.q_proj", Shape{6, 8}), ErrorCode::parameter_shape_mismatch,
      "layers.0.q_proj has shape [6, 8], expected [8, 6]");
  EXPECT_EQ(context.name, "layers.0.q_proj");
  EXPECT_EQ(context.expected, (Shape{8, 6}));
  EXPECT_EQ(context.actual, (Shape{6, 8}));
  expect_error<ShapeContext>(builder_.check_shape("final_norm", Shape{1, 6}),
                             ErrorCode::parameter_shape_mismatch);
  expect_error<ShapeContext>(builder_.check_shape("final_norm", {}),
                             ErrorCode::parameter_shape_mismatch);
  expect_error<NameContext>(builder_.check_shape("lm_head", Shape{7, 6}),
                            ErrorCode::unknown_parameter);
}

TEST_F(ModelBuilderTest, BlocksAreForMatricesOfWholeBlocks) {
  // A vector, and rows of 6 values where a block has 32.
  EXPECT_EQ(expect_error<NameContext>(builder_.allocate("final_norm", DType::q8_0),
                                      ErrorCode::unsupported_dtype)
                .name,
            "final_norm");
  EXPECT_EQ(expect_error<NameContext>(builder_.allocate("layers.0.q_proj", DType::q4_0),
                                      ErrorCode::unsupported_dtype)
                .name,
            "layers.0.q_proj");
  EXPECT_TRUE(testing::succeeded(builder_.allocate("layers.0.q_proj", DType::bf16)));
}

TEST_F(ModelBuilderTest, ANonFiniteValueDropsTheParameterAndItCanBeGivenAnew) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      std::vector<double> values(6, 1.0);
      values[4] = bad;
      const auto context = expect_error<ValueContext>(
          builder_.add("final_norm", dtype, testing::encode(values, dtype)),
          ErrorCode::non_finite_parameter);
      EXPECT_EQ(context.tensor, "final_norm");
      EXPECT_EQ(context.index, 4U);
    }
  }
  must(builder_.add("final_norm", DType::f32, zeros(spec("final_norm"), DType::f32)));
}

TEST(ModelTest, NonFiniteHalvesAndBlockScalesAreRefusedInEveryType) {
  SplitMix64 rng(91);
  for (const DType dtype :
       {DType::f16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q2_k,
        DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k}) {
    const DTypeInfo info = dtype_info(dtype);
    SCOPED_TRACE(info.name);
    Config config = testing::tiny_config();
    config.d_model = 256;
    ModelBuilder builder = must(ModelBuilder::create(config));
    auto bytes = testing::random_matrix(config.vocab_size, 256, dtype, rng);
    // Scales are at the beginning, or, in these three, at the end.
    const std::size_t offset = dtype == DType::q2_k   ? 80
                               : dtype == DType::q3_k ? 108
                               : dtype == DType::q6_k ? 208
                                                      : 0;
    const std::size_t second_block = info.block_bytes + offset;
    bytes[second_block] = std::byte{0};
    bytes[second_block + 1] = std::byte{0x7c};  // infinity
    const auto context = expect_error<ValueContext>(builder.add("token_embedding", dtype, bytes),
                                                    ErrorCode::non_finite_parameter);
    EXPECT_EQ(context.index, info.block_values);
    bytes[second_block + 1] = std::byte{0x3c};
    EXPECT_TRUE(testing::succeeded(builder.add("token_embedding", dtype, bytes)));
  }
}

TEST(ModelTest, ReadRowsGivesStoredValuesWhateverTheTypeAndTheRows) {
  SplitMix64 rng(92);
  const auto model = testing::random_model(testing::tiny_config(), rng, DType::f32);
  std::vector<double> all(8 * 6);
  must(model->read_rows("layers.1.q_proj", 0, all));
  for (const double value : all) EXPECT_EQ(value, static_cast<double>(static_cast<float>(value)));
  std::vector<double> two(2 * 6);
  must(model->read_rows("layers.1.q_proj", 5, two));
  EXPECT_TRUE(testing::same_bits(std::span<const double>(two),
                                 std::span<const double>(all).subspan(5 * 6, 12)));
}

// Q8_0 by its definition: 34-byte blocks of a half scale and 32 signed bytes. Rows are kept
// interleaved for the kernels, so reading them goes back through that form.
TEST(ModelTest, ReadRowsGivesTheValuesThatBlocksStandFor) {
  SplitMix64 rng(93);
  Config config = testing::tiny_config();
  config.d_model = 64;
  config.vocab_size = 11;
  ModelBuilder builder = must(ModelBuilder::create(config));
  std::vector<std::byte> bytes;
  std::vector<double> expected;
  for (std::size_t block = 0; block < 11 * 2; ++block) {
    const bool half = rng.next() % 2 == 0;
    bytes.push_back(std::byte{0});
    bytes.push_back(half ? std::byte{0x38} : std::byte{0x3c});  // 0.5 or 1
    for (int i = 0; i < 32; ++i) {
      const auto q = static_cast<std::int8_t>(rng.next() >> 56U);
      bytes.push_back(static_cast<std::byte>(q));
      expected.push_back((half ? 0.5 : 1.0) * q);
    }
  }
  must(builder.add("token_embedding", DType::q8_0, bytes));
  const auto specs = builder.specs();
  for (const ParameterSpec& spec : specs) {
    if (spec.name != "token_embedding")
      must(builder.add(spec.name, DType::f32, zeros(spec, DType::f32)));
  }
  const auto model = must(builder.finish());
  std::vector<double> read(expected.size());
  must(model->read_rows("token_embedding", 0, read));
  EXPECT_TRUE(testing::same_bits(std::span<const double>(read), expected));
  EXPECT_EQ(model->find("token_embedding")->bytes.size(), bytes.size());
}

TEST(ModelTest, ReadRowsChecksNameRowsAndSize) {
  SplitMix64 rng(94);
  const auto model = testing::random_model(testing::tiny_config(), rng);
  std::vector<double> one(6);
  std::vector<double> odd(7);
  expect_error<NameContext>(model->read_rows("nothing", 0, one), ErrorCode::unknown_parameter);
  const auto shape = expect_error<ShapeContext>(model->read_rows("layers.0.q_proj", 0, odd),
                                                ErrorCode::shape_mismatch);
  EXPECT_EQ(shape.name, "layers.0.q_proj");
  EXPECT_EQ(expect_error<FieldContext>(model->read_rows("layers.0.q_proj", 8, one),
                                       ErrorCode::invalid_argument)
                .field,
            "row_begin");
  expect_error<FieldContext>(
      model->read_rows("layers.0.q_proj", std::numeric_limits<std::size_t>::max(), one),
      ErrorCode::invalid_argument);
  EXPECT_TRUE(testing::succeeded(model->read_rows("layers.0.q_proj", 7, one)));
}

TEST(ModelTest, ParametersHaveDistinctIdentitiesAndRevisionZero) {
  SplitMix64 rng(95);
  const auto a = testing::random_model(testing::tiny_config(), rng);
  const auto b = testing::random_model(testing::tiny_config(), rng);
  std::set<std::uint64_t> identities;
  for (const auto& model : {a, b}) {
    for (const Parameter& parameter : model->parameters()) {
      EXPECT_TRUE(identities.insert(parameter.identity).second);
      EXPECT_EQ(parameter.revision, 0U);
    }
  }
}

TEST(ModelTest, AnUpdateReplacesTheValuesAndTheTypeAndKeepsTheIdentity) {
  SplitMix64 rng(96);
  const auto model = testing::random_model(testing::tiny_config(), rng);
  const std::uint64_t identity = model->find("final_norm")->identity;
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  must(model->update_parameter("final_norm", DType::f32, testing::encode(values, DType::f32)));
  const Parameter& parameter = *model->find("final_norm");
  EXPECT_EQ(parameter.identity, identity);
  EXPECT_EQ(parameter.revision, 1U);
  EXPECT_EQ(parameter.dtype, DType::f32);
  std::vector<double> read(6);
  must(model->read_rows("final_norm", 0, read));
  EXPECT_EQ(read, values);
}

TEST(ModelTest, ARefusedUpdateChangesNothing) {
  SplitMix64 rng(97);
  const auto model = testing::random_model(testing::tiny_config(), rng);
  std::vector<double> before(6);
  must(model->read_rows("final_norm", 0, before));
  std::vector<double> spoiled(6, 1.0);
  spoiled[5] = std::numeric_limits<double>::infinity();
  const std::vector<std::byte> bytes(24);
  expect_error<NameContext>(model->update_parameter("nothing", DType::f32, bytes),
                            ErrorCode::unknown_parameter);
  expect_error<MismatchContext>(model->update_parameter("final_norm", DType::f64, bytes),
                                ErrorCode::parameter_size_mismatch);
  expect_error<NameContext>(model->update_parameter("final_norm", DType::q8_0, bytes),
                            ErrorCode::unsupported_dtype);
  expect_error<ValueContext>(
      model->update_parameter("final_norm", DType::f64, testing::encode(spoiled, DType::f64)),
      ErrorCode::non_finite_parameter);
  std::vector<double> after(6);
  must(model->read_rows("final_norm", 0, after));
  EXPECT_EQ(after, before);
  EXPECT_EQ(model->find("final_norm")->revision, 0U);
  EXPECT_EQ(model->find("final_norm")->dtype, DType::f64);
}

TEST(ModelTest, RandomModelsAreF64OrF32AndLeaveTheRngWhenRefused) {
  SplitMix64 rng(98);
  EXPECT_EQ(expect_error<NameContext>(Model::random(testing::tiny_config(), rng, DType::bf16),
                                      ErrorCode::unsupported_dtype)
                .name,
            "bf16");
  Config invalid = testing::tiny_config();
  invalid.d_ff = 0;
  expect_error<FieldContext>(Model::random(invalid, rng, DType::f32), ErrorCode::invalid_config);
  EXPECT_EQ(rng.state(), 98U);
}

// Glorot and Bengio's bound for a 8 x 6 projection, gains of 1, biases of 0.
TEST(ModelTest, RandomMatricesFillTheXavierRange) {
  SplitMix64 rng(99);
  Config config = testing::tiny_config();
  config.qkv_bias = true;
  const auto model = must(Model::random(config, rng, DType::f64));
  std::vector<double> values(8 * 6);
  must(model->read_rows("layers.0.q_proj", 0, values));
  const double bound = std::sqrt(6.0 / 14.0);
  for (const double value : values) EXPECT_LE(std::abs(value), bound);
  EXPECT_GT(*std::ranges::max_element(values), 0.5 * bound);
  EXPECT_LT(*std::ranges::min_element(values), -0.5 * bound);
  std::vector<double> vector(8);
  must(model->read_rows("layers.0.q_bias", 0, vector));
  for (const double value : vector) EXPECT_EQ(value, 0.0);
  vector.resize(6);
  must(model->read_rows("layers.1.ffn_norm", 0, vector));
  for (const double value : vector) EXPECT_EQ(value, 1.0);
}

}  // namespace
}  // namespace kvlens
