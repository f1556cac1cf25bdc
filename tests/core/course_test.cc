// Every figure of the course cases, in double: parameters, steps, draws, generations and counters.
// Further cases come from the folders in KVLENS_EXTRA_GOLDEN.

#include "support/course.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "kvlens/evidence.h"
#include "kvlens/generate.h"
#include "kvlens/session.h"
#include "kvlens/work.h"
#include "support/cache_rows.h"
#include "support/expect.h"
#include "support/fixtures.h"
#include "support/snapshot.h"
#include "support/uncached.h"

namespace kvlens {
namespace {

using testing::all_near;
using testing::CourseCase;
using testing::CourseGeneration;
using testing::CourseStep;
using testing::must;

constexpr double tolerance = 2e-12;

void for_each_course_case(const std::function<void(const CourseCase&)>& check) {
  std::size_t cases = 0;
  for (const testing::GoldenFolder& folder : testing::golden_folders()) {
    for (const std::filesystem::path& path : folder.course_files) {
      SCOPED_TRACE(path.string());
      check(testing::read_course_case(path));
      ++cases;
    }
  }
  EXPECT_GE(cases, 4U);
}

std::shared_ptr<Model> model_of(const CourseCase& course) {
  return testing::model_of(course.config, course.parameters, DType::f64);
}

void expect_work(const Work& actual, const testing::CourseWork& expected) {
  EXPECT_EQ(actual.prefill_tokens, expected.prefill_tokens);
  EXPECT_EQ(actual.decode_tokens, expected.decode_tokens);
  EXPECT_EQ(actual.cache_appends, expected.cache_appends);
  EXPECT_EQ(actual.qkv_projection_rows, expected.qkv_projection_rows);
  EXPECT_EQ(actual.attention_score_values, expected.attention_score_values);
}

Result<Step<double>> run(Session<double>& session, const CourseStep& step,
                         StageTap<double>* tap = nullptr) {
  return step.is_prefill ? session.prefill(step.tokens, tap) : session.decode(step.tokens[0], tap);
}

TEST(CourseGoldenTest, RandomModelHasTheBitsOfEveryParameterAndLeavesTheRngThere) {
  for_each_course_case([](const CourseCase& course) {
    SplitMix64 rng(course.seed);
    const auto model = must(Model::random(course.config, rng, DType::f64));
    EXPECT_EQ(rng.state(), course.rng_state_after_init);
    ASSERT_EQ(model->parameters().size(), course.parameters.size());
    for (std::size_t i = 0; i < course.parameters.size(); ++i) {
      const auto& [name, values] = course.parameters[i];
      EXPECT_EQ(model->parameters()[i].spec.name, name);
      std::vector<double> read(values.size());
      ASSERT_TRUE(testing::succeeded(model->read_rows(name, 0, read))) << name;
      EXPECT_TRUE(testing::same_bits(std::span<const double>(read), values)) << name;
    }
  });
}

TEST(CourseGoldenTest, EachStepGivesTheLogitsPositionLengthAndCounters) {
  for_each_course_case([](const CourseCase& course) {
    const auto session = testing::make_session<double>(model_of(course));
    for (const CourseStep& step : course.steps) {
      const std::size_t len_before = session->kv_len();
      const Work work_before = session->work();
      const auto done = run(*session, step);
      ASSERT_TRUE(testing::succeeded(done));
      EXPECT_TRUE(all_near(done->logits, step.logits, tolerance));
      EXPECT_TRUE(testing::same_bits(session->logits(), testing::copy_of(done->logits)));
      EXPECT_EQ(done->position, step.position);
      EXPECT_EQ(done->kv_len_before, len_before);
      EXPECT_EQ(done->kv_len, step.cache_len);
      EXPECT_EQ(session->kv_len(), step.cache_len);
      EXPECT_EQ(done->row_attention_score_values, step.row_attention_score_values);
      EXPECT_EQ(session->work().token_forwards, step.work.token_forwards);
      expect_work(session->work(), step.work);
      EXPECT_TRUE(testing::same_work(must(checked_add(work_before, done->work)), session->work()));
    }
  });
}

TEST(CourseGoldenTest, EachStepLeavesTheKeysAndValuesInEveryLayer) {
  for_each_course_case([](const CourseCase& course) {
    const auto session = testing::make_session<double>(model_of(course));
    for (const CourseStep& step : course.steps) {
      ASSERT_TRUE(testing::succeeded(run(*session, step)));
      ASSERT_EQ(session->cache()->layers().size(), step.layers.size());
      for (std::size_t layer = 0; layer < step.layers.size(); ++layer) {
        const LayerKvCache<double>& cache = session->cache()->layers()[layer];
        const std::size_t head_values = step.cache_len * course.config.head_dim;
        ASSERT_EQ(step.layers[layer].keys.size(), course.config.n_heads * head_values);
        for (std::size_t head = 0; head < course.config.n_heads; ++head) {
          const std::span keys(step.layers[layer].keys);
          const std::span values(step.layers[layer].values);
          EXPECT_TRUE(all_near<double>(testing::keys_of(cache, 0, head),
                                       keys.subspan(head * head_values, head_values), tolerance));
          EXPECT_TRUE(all_near<double>(testing::values_of(cache, 0, head),
                                       values.subspan(head * head_values, head_values), tolerance));
        }
      }
    }
  });
}

TEST(CourseGoldenTest, EachStepsNewestAttentionRowIsInTheEvidence) {
  for_each_course_case([](const CourseCase& course) {
    const auto session = testing::make_session<double>(model_of(course));
    for (const CourseStep& step : course.steps) {
      EvidenceRecorder<double> recorder(Capture::attention);
      ASSERT_TRUE(testing::succeeded(run(*session, step, &recorder)));
      std::size_t rows_found = 0;
      for (const auto& record : recorder.records()) {
        if (record.site.position != step.position) continue;
        ++rows_found;
        const auto& expected = step.attention_last_row[record.site.layer];
        ASSERT_EQ(record.values.size(), expected.size() * step.cache_len);
        for (std::size_t head = 0; head < expected.size(); ++head) {
          EXPECT_TRUE(all_near(record.values.span().subspan(head * step.cache_len, step.cache_len),
                               expected[head], tolerance))
              << "layer " << record.site.layer << " head " << head;
        }
      }
      EXPECT_EQ(rows_found, course.config.n_layers);
    }
  });
}

TEST(CourseGoldenTest, ReplayOfEachPrefixGivesTheCompletePrefixLogitsAndGridCount) {
  for_each_course_case([](const CourseCase& course) {
    const auto session = testing::make_session<double>(model_of(course));
    for (const CourseStep& step : course.steps) {
      ASSERT_TRUE(testing::succeeded(run(*session, step)));
      const auto replay = session->replay(session->tokens());
      ASSERT_TRUE(testing::succeeded(replay));
      EXPECT_TRUE(all_near(std::as_const(replay->logits).span(), step.complete_prefix_last_logits,
                           tolerance));
      EXPECT_EQ(replay->work.attention_score_values, step.complete_prefix_attention_score_values);
      EXPECT_TRUE(testing::same_bits(std::as_const(replay->logits).span(),
                                     testing::copy_of(session->logits())));
    }
  });
}

void expect_generation(const Generation& actual, const CourseGeneration& expected) {
  EXPECT_EQ(actual.tokens, expected.generated);
  EXPECT_EQ(actual.stop, expected.stop);
  ASSERT_EQ(actual.steps.size(), expected.steps.size());
  for (std::size_t i = 0; i < expected.steps.size(); ++i) {
    const Draw& draw = actual.steps[i].draw;
    EXPECT_EQ(actual.steps[i].prefix_length, expected.steps[i].prefix_length);
    EXPECT_EQ(draw.token, expected.steps[i].token);
    EXPECT_EQ(draw.unit_draw, expected.steps[i].unit_draw);
    EXPECT_NEAR(draw.interval_start, expected.steps[i].interval_start, tolerance);
    EXPECT_NEAR(draw.interval_end, expected.steps[i].interval_end, tolerance);
    EXPECT_EQ(draw.probability, draw.interval_end - draw.interval_start);
  }
}

GenerateRequest request_for(const CourseCase& course, const CourseGeneration& generation) {
  return {.prompt = course.prompt(),
          .max_new_tokens = generation.max_new_tokens,
          .eos_token = generation.eos_token,
          .sampling = generation.sampling};
}

TEST(CourseGoldenTest, CachedGenerationGivesEveryTokenDrawStateStopAndCounter) {
  for_each_course_case([](const CourseCase& course) {
    const auto model = model_of(course);
    for (std::size_t i = 0; i < course.generations.size(); ++i) {
      SCOPED_TRACE("generation " + std::to_string(i));
      const CourseGeneration& expected = course.generations[i];
      const auto session = testing::make_session<double>(model);
      SplitMix64 rng(expected.rng_seed);
      const auto actual = generate(*session, request_for(course, expected), rng);
      ASSERT_TRUE(testing::succeeded(actual));
      expect_generation(*actual, expected);
      expect_work(actual->work, expected.work);
      EXPECT_TRUE(testing::same_work(actual->work, session->work()));
      EXPECT_EQ(session->kv_len(), expected.final_cache_len);
      EXPECT_EQ(rng.state(), expected.rng_state_after);
    }
  });
}

TEST(CourseGoldenTest, UncachedGenerationGivesTheSameTraceFromCompletePrefixes) {
  for_each_course_case([](const CourseCase& course) {
    const auto session = testing::make_session<double>(model_of(course));
    const auto untouched = testing::snapshot(*session);
    for (std::size_t i = 0; i < course.generations.size(); ++i) {
      SCOPED_TRACE("generation " + std::to_string(i));
      const CourseGeneration& expected = course.generations[i];
      SplitMix64 rng(expected.rng_seed);
      const auto actual = testing::generate_uncached(*session, request_for(course, expected), rng);
      ASSERT_TRUE(testing::succeeded(actual));
      expect_generation(*actual, expected);
      EXPECT_EQ(actual->work.attention_score_values,
                expected.complete_prefix_attention_score_values);
      EXPECT_EQ(rng.state(), expected.rng_state_after);
    }
    EXPECT_TRUE(testing::same_state(testing::snapshot(*session), untouched));
  });
}

TEST(CourseGoldenTest, ContrastOfEachGenerationIsTheDifferenceOfItsCounts) {
  for_each_course_case([](const CourseCase& course) {
    const auto session = testing::make_session<double>(model_of(course));
    for (const CourseGeneration& expected : course.generations) {
      if (expected.steps.empty()) continue;
      SplitMix64 rng(expected.rng_seed);
      const auto uncached =
          must(testing::generate_uncached(*session, request_for(course, expected), rng));
      rng = SplitMix64(expected.rng_seed);
      const auto cached = must(generate(*session, request_for(course, expected), rng));
      session->reset();
      std::vector<std::size_t> lengths;
      for (const auto& step : expected.steps) lengths.push_back(step.prefix_length);
      const auto difference =
          contrast(course.config, {lengths, cached.work}, {lengths, uncached.work});
      ASSERT_TRUE(testing::succeeded(difference));
      EXPECT_EQ(difference->cached_score_values, expected.work.attention_score_values);
      EXPECT_EQ(difference->replay_score_values, expected.complete_prefix_attention_score_values);
      EXPECT_EQ(difference->avoided_score_values, expected.complete_prefix_attention_score_values -
                                                      expected.work.attention_score_values);
      EXPECT_EQ(difference->cached_projection_rows, expected.work.qkv_projection_rows);
    }
  });
}

// 2 layers of 2 heads: prefill of 2 makes rows of 1 and 2 entries, 2 x 2 x 3 = 12; the decode's row
// has 3, 12 more. The replays make grids of 2 x 2 and 3 x 3: 16 + 36.
TEST(CourseGoldenTest, FixtureOfTwoLayersAvoids28Of52Scores) {
  const CourseCase course =
      testing::read_course_case(testing::fixtures_root() / "course" / "fixture-2x2x4.json");
  const auto session = testing::make_session<double>(model_of(course));
  const std::vector<std::uint32_t> prompt = {0, 1};
  const std::vector<std::uint32_t> whole = {0, 1, 2};
  must(session->prefill(prompt));
  EXPECT_EQ(session->work().attention_score_values, 12U);
  must(session->decode(2));
  const Work short_replay = must(session->replay(prompt)).work;
  const Work long_replay = must(session->replay(whole)).work;
  EXPECT_EQ(short_replay.attention_score_values, 16U);
  EXPECT_EQ(long_replay.attention_score_values, 36U);
  const std::vector<std::size_t> lengths = {2, 3};
  const auto difference = must(contrast(course.config, {lengths, session->work()},
                                        {lengths, must(checked_add(short_replay, long_replay))}));
  EXPECT_EQ(difference.cached_score_values, 24U);
  EXPECT_EQ(difference.replay_score_values, 52U);
  EXPECT_EQ(difference.avoided_score_values, 28U);
  EXPECT_EQ(difference.cached_projection_rows, 18U);
  EXPECT_EQ(difference.replay_projection_rows, 30U);
  EXPECT_EQ(difference.avoided_projection_rows, 12U);
}

TEST(CourseGoldenTest, FloatStaysWithinSinglePrecisionOfTheReference) {
  // In proportion to the largest logit: 3e-6 is 50 roundings of 2^-24.
  for_each_course_case([](const CourseCase& course) {
    const auto session = testing::make_session<float>(
        testing::model_of(course.config, course.parameters, DType::f32));
    for (const CourseStep& step : course.steps) {
      const auto done =
          step.is_prefill ? session->prefill(step.tokens) : session->decode(step.tokens[0]);
      ASSERT_TRUE(testing::succeeded(done));
      EXPECT_TRUE(all_near(done->logits, step.logits, 3e-6 * testing::magnitude(step.logits)));
    }
  });
}

}  // namespace
}  // namespace kvlens
