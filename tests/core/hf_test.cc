// Hugging Face checkpoints against a float64 forward pass over the same stored weights.
// Further cases come from the folders in KVLENS_EXTRA_GOLDEN.

#include "support/hf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "kvlens/evidence.h"
#include "kvlens/generate.h"
#include "kvlens/session.h"
#include "support/expect.h"
#include "support/fixtures.h"
#include "support/models.h"
#include "support/uncached.h"

namespace kvlens {
namespace {

using testing::all_near;
using testing::HfCase;
using testing::must;
using testing::StoredTensor;

constexpr double double_bound = 1e-9;
constexpr double float_attention_bound = 5e-6;

// The roundings that a number can meet on its way from a token to a logit: n for a sum of n
// products or for n other operations one after another, whatever the order of the additions.
double roundings_per_logit(const Config& config, std::size_t len) {
  const std::size_t norm = config.d_model + 4;  // squares, their mean, epsilon, inverse root, gain
  const std::size_t qkv = config.d_model + (config.qkv_bias ? 1 : 0) +
                          (config.qk_norm ? config.head_dim + 4 : 0) + 3;  // and RoPE
  const std::size_t attend = config.head_dim + 1 + (len + 2) + len;        // scores, softmax, mix
  const std::size_t attention = norm + qkv + attend + config.q_width() + 1;
  const std::size_t ffn = norm + config.d_model + 4 + config.d_ff + 1;  // SwiGLU between products
  return static_cast<double>(config.n_layers * (attention + ffn) + norm + config.d_model);
}

// The largest error of a logit in single precision, in proportion to the largest logit. Roundings
// are at most u = 2^-24 each and behave like independent errors of mean zero, so that k of them add
// up to less than lambda sqrt(k) u with a probability of at least 1 - 2 exp(-lambda^2 / 2) (Higham
// and Mary 2019, "A new approach to probabilistic rounding error analysis"). With lambda = 7, one
// logit in 2 * 10^10 may exceed that. The analysis takes it that layers carry errors on without
// making them larger, as the norms before each of their parts do.
double float_bound(const HfCase& hf) {
  constexpr double u = 0x1p-24;
  constexpr double lambda = 7;
  return lambda * std::sqrt(roundings_per_logit(hf.config, hf.tokens.size())) * u;
}

void for_each_hf_case(const std::function<void(const HfCase&)>& check) {
  std::size_t cases = 0;
  for (const testing::GoldenFolder& folder : testing::golden_folders()) {
    for (const std::filesystem::path& path : folder.hf_folders) {
      SCOPED_TRACE(path.string());
      check(testing::read_hf_case(path));
      ++cases;
    }
  }
  EXPECT_GE(cases, 12U);
}

// bf16 is the upper half of a float32.
std::vector<std::byte> upcast_bf16(const std::vector<std::byte>& bytes) {
  std::vector<std::byte> wide(bytes.size() * 2, std::byte{0});
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    wide[2 * i + 2] = bytes[i];
    wide[2 * i + 3] = bytes[i + 1];
  }
  return wide;
}

enum class Storage { as_in_file, upcast };

std::shared_ptr<Model> model_of(const HfCase& hf, Storage storage) {
  ModelBuilder builder = must(ModelBuilder::create(hf.config));
  for (const StoredTensor& tensor : hf.tensors) {
    if (tensor.name == "lm_head" && hf.config.tied_embedding) continue;
    if (storage == Storage::upcast && tensor.dtype == DType::bf16) {
      must(builder.add(tensor.name, DType::f32, upcast_bf16(tensor.bytes)));
    } else {
      must(builder.add(tensor.name, tensor.dtype, tensor.bytes));
    }
  }
  return must(builder.finish());
}

template <class T>
void expect_logits_of_every_position(const HfCase& hf, double bound) {
  const auto session = testing::make_session<T>(model_of(hf, Storage::as_in_file));
  const auto replay = session->replay(hf.tokens, /*all_logits=*/true);
  ASSERT_TRUE(testing::succeeded(replay));
  for (std::size_t row = 0; row < hf.tokens.size(); ++row) {
    const auto step = row == 0 ? session->prefill(std::span(hf.tokens).first(1))
                               : session->decode(hf.tokens[row]);
    ASSERT_TRUE(testing::succeeded(step));
    const double largest = std::is_same_v<T, float> ? testing::magnitude(hf.logits[row]) : 1.0;
    EXPECT_TRUE(all_near(step->logits, hf.logits[row], bound * largest)) << "position " << row;
    const std::size_t vocab = hf.config.vocab_size;
    EXPECT_TRUE(all_near(std::as_const(replay->logits).span().subspan(row * vocab, vocab),
                         hf.logits[row], bound * largest))
        << "replay, position " << row;
  }
}

TEST(HfGoldenTest, DoubleGivesEveryLogitCachedAndReplayed) {
  for_each_hf_case(
      [](const HfCase& hf) { expect_logits_of_every_position<double>(hf, double_bound); });
}

TEST(HfGoldenTest, FloatGivesEveryLogitCachedAndReplayed) {
  for_each_hf_case(
      [](const HfCase& hf) { expect_logits_of_every_position<float>(hf, float_bound(hf)); });
}

template <class T>
void expect_attention(const HfCase& hf, const EvidenceRecorder<T>& recorder, double bound) {
  std::size_t rows_found = 0;
  for (const auto& record : recorder.records()) {
    const auto& layer = hf.attentions[record.site.layer];
    const std::size_t len = record.site.position + 1;
    ASSERT_EQ(record.values.size(), layer.size() * len);
    for (std::size_t head = 0; head < layer.size(); ++head) {
      EXPECT_TRUE(all_near(record.values.span().subspan(head * len, len),
                           layer[head][record.site.position], bound))
          << "layer " << record.site.layer << " head " << head << " row " << record.site.position;
    }
    ++rows_found;
  }
  EXPECT_EQ(rows_found, hf.config.n_layers * hf.tokens.size());
}

template <class T>
void expect_every_attention_weight(const HfCase& hf, double bound) {
  const auto model = model_of(hf, Storage::as_in_file);
  const std::span tokens(hf.tokens);
  const std::size_t split = tokens.size() / 2;
  EvidenceRecorder<T> cached(Capture::attention);
  const auto session = testing::make_session<T>(model);
  must(session->prefill(tokens.first(split), &cached));
  for (const std::uint32_t token : tokens.subspan(split)) must(session->decode(token, &cached));
  expect_attention(hf, cached, bound);
  EvidenceRecorder<T> replayed(Capture::attention);
  must(session->replay(tokens, false, &replayed));
  expect_attention(hf, replayed, bound);
}

TEST(HfGoldenTest, DoubleGivesEveryAttentionWeight) {
  for_each_hf_case(
      [](const HfCase& hf) { expect_every_attention_weight<double>(hf, double_bound); });
}

TEST(HfGoldenTest, FloatGivesEveryAttentionWeight) {
  for_each_hf_case(
      [](const HfCase& hf) { expect_every_attention_weight<float>(hf, float_attention_bound); });
}

template <class T>
void expect_greedy_run(const HfCase& hf) {
  const auto session = testing::make_session<T>(model_of(hf, Storage::as_in_file));
  SplitMix64 rng(1);
  const GenerateRequest request{
      .prompt = hf.greedy_prompt, .max_new_tokens = hf.greedy_output.size(), .sampling = {}};
  EXPECT_EQ(must(testing::generate_uncached(*session, request, rng)).tokens, hf.greedy_output);
  EXPECT_EQ(must(generate(*session, request, rng)).tokens, hf.greedy_output);
  EXPECT_EQ(rng.state(), 1U);
}

TEST(HfGoldenTest, GreedyRunsGiveTheSameIdsInDoubleAndFloat) {
  for_each_hf_case([](const HfCase& hf) {
    expect_greedy_run<double>(hf);
    // Two logits nearer to each other than float can tell apart would be no error of ours.
    if (hf.smallest_greedy_gap > 1e-3) expect_greedy_run<float>(hf);
  });
}

TEST(HfGoldenTest, NoGreedyRunOfTheFixturesIsTooCloseForFloat) {
  const auto folders = testing::golden_folders();
  for (const auto& path : folders[1].hf_folders) {
    EXPECT_GT(testing::read_hf_case(path).smallest_greedy_gap, 1e-3) << path;
  }
}

template <class T>
void expect_same_bits_upcast(const HfCase& hf) {
  const auto stored = testing::make_session<T>(model_of(hf, Storage::as_in_file));
  const auto upcast = testing::make_session<T>(model_of(hf, Storage::upcast));
  const auto a = must(stored->replay(hf.tokens, /*all_logits=*/true));
  const auto b = must(upcast->replay(hf.tokens, /*all_logits=*/true));
  EXPECT_TRUE(testing::same_bits(a.logits.span(), testing::copy_of(b.logits.span())));
}

TEST(HfGoldenTest, WeightsKeptInBf16GiveTheBitsOfTheSameWeightsInF32) {
  for_each_hf_case([](const HfCase& hf) {
    const bool has_bf16 = std::ranges::any_of(
        hf.tensors, [](const StoredTensor& tensor) { return tensor.dtype == DType::bf16; });
    if (!has_bf16) return;
    expect_same_bits_upcast<double>(hf);
    expect_same_bits_upcast<float>(hf);
  });
}

// Frequencies of the llama3 rule at its two ends: a short wave is kept, a long one slowed by 8.
TEST(Llama3ScalingTest, KeepsShortWavesAndSlowsLongOnesByTheFactor) {
  const auto factors = testing::llama3_freq_factors({8.0, 1.0, 4.0, 32.0}, 500000.0, 8);
  ASSERT_EQ(factors.size(), 4U);
  EXPECT_EQ(factors[0], 1.0);         // wavelength 6.28 < 32 / 4
  EXPECT_DOUBLE_EQ(factors[1], 8.0);  // 6.28 * 500000^(1/4) = 167 > 32
  EXPECT_DOUBLE_EQ(factors[3], 8.0);
}

}  // namespace
}  // namespace kvlens
