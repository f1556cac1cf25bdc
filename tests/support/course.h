// The course figures: small decoders in IEEE double with their steps and generations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kvlens/config.h"
#include "kvlens/generate.h"
#include "support/models.h"

namespace kvlens::testing {

struct CourseWork {
  std::uint64_t token_forwards = 0;  // steps only
  std::uint64_t prefill_tokens = 0;
  std::uint64_t decode_tokens = 0;
  std::uint64_t cache_appends = 0;
  std::uint64_t qkv_projection_rows = 0;
  std::uint64_t attention_score_values = 0;
};

struct CourseLayer {
  std::vector<double> keys;    // [heads, len, head_width]
  std::vector<double> values;  // [heads, len, head_width]
};

struct CourseStep {
  bool is_prefill = false;
  std::vector<std::uint32_t> tokens;
  std::size_t position = 0;
  std::size_t cache_len = 0;
  std::uint64_t row_attention_score_values = 0;
  std::vector<double> logits;
  std::vector<double> complete_prefix_last_logits;
  std::uint64_t complete_prefix_attention_score_values = 0;
  CourseWork work;                                                   // since the first step
  std::vector<std::vector<std::vector<double>>> attention_last_row;  // [layer][head][len]
  std::vector<CourseLayer> layers;
};

struct CourseDraw {
  std::size_t prefix_length = 0;
  std::uint32_t token = 0;
  std::optional<double> unit_draw;
  double interval_start = 0;
  double interval_end = 0;
};

struct CourseGeneration {
  SamplingConfig sampling;
  std::uint64_t rng_seed = 0;
  std::size_t max_new_tokens = 0;
  std::optional<std::uint32_t> eos_token;
  std::vector<std::uint32_t> generated;
  StopReason stop = StopReason::eos;
  std::size_t final_cache_len = 0;
  std::uint64_t rng_state_after = 0;
  CourseWork work;
  std::uint64_t complete_prefix_attention_score_values = 0;
  std::vector<CourseDraw> steps;
};

struct CourseCase {
  std::string name;
  Config config;
  std::uint64_t seed = 0;
  std::uint64_t rng_state_after_init = 0;
  std::vector<NamedValues> parameters;  // kvlens names and orientation, in the order of the file
  std::vector<CourseStep> steps;
  std::vector<CourseGeneration> generations;

  [[nodiscard]] const std::vector<std::uint32_t>& prompt() const { return steps.front().tokens; }
};

CourseCase read_course_case(const std::filesystem::path& path);

// The cases of a golden folder's course files.
std::vector<CourseCase> read_course_cases(const std::vector<std::filesystem::path>& paths);

}  // namespace kvlens::testing
