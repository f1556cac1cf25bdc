#include "kvlens/work.h"

#include <limits>
#include <string>

#include "base/try.h"

namespace kvlens {
namespace {

Result<std::uint64_t> checked_sum(std::uint64_t a, std::uint64_t b, std::string_view counter) {
  if (b > std::numeric_limits<std::uint64_t>::max() - a) {
    return fail(ErrorCode::work_overflow, NoContext{},
                "work counter " + std::string(counter) + " would exceed 64 bits");
  }
  return a + b;
}

Result<std::uint64_t> checked_product(std::uint64_t a, std::uint64_t b, std::string_view counter) {
  if (a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a) {
    return fail(ErrorCode::work_overflow, NoContext{},
                "work counter " + std::string(counter) + " would exceed 64 bits");
  }
  return a * b;
}

Result<void> check_count(std::string_view schedule, std::string_view counter,
                         std::uint64_t measured, std::uint64_t computed) {
  if (measured != computed) {
    const std::string field = std::string(schedule) + " " + std::string(counter);
    return fail(ErrorCode::count_mismatch,
                FieldContext{field, std::to_string(measured), std::to_string(computed)},
                field + " was measured as " + std::to_string(measured) + ", the formula gives " +
                    std::to_string(computed));
  }
  return {};
}

struct Counts {
  std::uint64_t scores = 0;
  std::uint64_t projection_rows = 0;
};

// A cached schedule makes one row of each length up to the last prefix.
Result<Counts> cached_formula(const Config& config, std::uint64_t last_length) {
  constexpr std::string_view name = "attention_score_values";
  const std::uint64_t even = last_length % 2 == 0 ? last_length / 2 : last_length;
  const std::uint64_t odd = last_length % 2 == 0 ? last_length + 1 : (last_length + 1) / 2;
  KVLENS_TRY(const std::uint64_t triangle, checked_product(even, odd, name));
  KVLENS_TRY(const std::uint64_t per_layer, checked_product(triangle, config.n_heads, name));
  KVLENS_TRY(const std::uint64_t scores, checked_product(per_layer, config.n_layers, name));
  KVLENS_TRY(const std::uint64_t rows, checked_product(std::uint64_t{3} * config.n_layers,
                                                       last_length, "qkv_projection_rows"));
  return Counts{scores, rows};
}

// A replay schedule makes the dense grid of every prefix length.
Result<Counts> replay_formula(const Config& config, std::span<const std::size_t> lengths) {
  Counts counts;
  for (const std::size_t length : lengths) {
    constexpr std::string_view name = "attention_score_values";
    KVLENS_TRY(const std::uint64_t grid, checked_product(length, length, name));
    KVLENS_TRY(const std::uint64_t per_layer, checked_product(grid, config.n_heads, name));
    KVLENS_TRY(const std::uint64_t scores, checked_product(per_layer, config.n_layers, name));
    KVLENS_TRY(counts.scores, checked_sum(counts.scores, scores, name));
    KVLENS_TRY(const std::uint64_t rows,
               checked_product(std::uint64_t{3} * config.n_layers, length, "qkv_projection_rows"));
    KVLENS_TRY(counts.projection_rows,
               checked_sum(counts.projection_rows, rows, "qkv_projection_rows"));
  }
  return counts;
}

Result<std::uint64_t> avoided(std::string_view counter, std::uint64_t cached,
                              std::uint64_t replay) {
  if (cached > replay) {
    return fail(ErrorCode::cached_exceeds_replay, LimitContext{cached, replay},
                "cached " + std::string(counter) + " is " + std::to_string(cached) +
                    ", more than the replay's " + std::to_string(replay));
  }
  return replay - cached;
}

Result<void> check_schedules(std::span<const std::size_t> cached,
                             std::span<const std::size_t> replay) {
  if (cached.empty() || cached[0] == 0) {
    return fail(ErrorCode::invalid_argument, FieldContext{"prefix_lengths", "none", "at least one"},
                "a schedule needs at least one prefix of at least one token");
  }
  if (cached.size() != replay.size()) {
    return fail(ErrorCode::invalid_argument,
                FieldContext{"prefix_lengths", std::to_string(replay.size()),
                             std::to_string(cached.size())},
                "the schedules have " + std::to_string(cached.size()) + " and " +
                    std::to_string(replay.size()) + " prefixes");
  }
  for (std::size_t i = 0; i < cached.size(); ++i) {
    const std::size_t expected = i == 0 ? cached[0] : cached[i - 1] + 1;
    if (cached[i] != expected || replay[i] != cached[i]) {
      return fail(
          ErrorCode::invalid_argument,
          FieldContext{"prefix_lengths", std::to_string(replay[i]), std::to_string(expected)},
          "prefix " + std::to_string(i) + " has lengths " + std::to_string(cached[i]) + " and " +
              std::to_string(replay[i]) + ", both should be " + std::to_string(expected));
    }
  }
  return {};
}

}  // namespace

Result<Work> checked_add(const Work& a, const Work& b) {
  Work sum;
#define KVLENS_WORK_ADD(name)                                 \
  {                                                           \
    KVLENS_TRY(sum.name, checked_sum(a.name, b.name, #name)); \
  }
  KVLENS_WORK_COUNTERS(KVLENS_WORK_ADD)
#undef KVLENS_WORK_ADD
  return sum;
}

Result<Contrast> contrast(const Config& config, const Schedule& cached, const Schedule& replay) {
  KVLENS_CHECK(check_schedules(cached.prefix_lengths, replay.prefix_lengths));
  const Work& a = cached.work;
  const Work& b = replay.work;
  // First, since no formula allows it either: the plainer of the two errors.
  KVLENS_TRY(const std::uint64_t scores,
             avoided("attention_score_values", a.attention_score_values, b.attention_score_values));
  KVLENS_TRY(const std::uint64_t rows,
             avoided("qkv_projection_rows", a.qkv_projection_rows, b.qkv_projection_rows));
  KVLENS_TRY(const Counts cached_counts, cached_formula(config, cached.prefix_lengths.back()));
  KVLENS_TRY(const Counts replay_counts, replay_formula(config, replay.prefix_lengths));
  KVLENS_CHECK(check_count("cached", "attention_score_values", a.attention_score_values,
                           cached_counts.scores));
  KVLENS_CHECK(check_count("cached", "qkv_projection_rows", a.qkv_projection_rows,
                           cached_counts.projection_rows));
  KVLENS_CHECK(check_count("replay", "attention_score_values", b.attention_score_values,
                           replay_counts.scores));
  KVLENS_CHECK(check_count("replay", "qkv_projection_rows", b.qkv_projection_rows,
                           replay_counts.projection_rows));
  return Contrast{.cached_score_values = a.attention_score_values,
                  .replay_score_values = b.attention_score_values,
                  .avoided_score_values = scores,
                  .cached_projection_rows = a.qkv_projection_rows,
                  .replay_projection_rows = b.qkv_projection_rows,
                  .avoided_projection_rows = rows};
}

}  // namespace kvlens
