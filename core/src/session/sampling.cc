#include "kvlens/sampling.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/try.h"
#include "kvlens/memory.h"
#include "ops/elementary.h"
#include "ops/row_ops.h"

namespace kvlens {
namespace {

struct Candidate {
  double logit;
  std::uint32_t token;
};

bool ranks_before(const Candidate& a, const Candidate& b) noexcept {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// Sum with Neumaier's compensation (Neumaier 1974, ZAMM 54).
class CompensatedSum {
 public:
  void add(double value) noexcept {
    const double next = sum_ + value;
    correction_ +=
        std::abs(sum_) >= std::abs(value) ? (sum_ - next) + value : (value - next) + sum_;
    sum_ = next;
  }
  [[nodiscard]] double value() const noexcept { return sum_ + correction_; }

 private:
  double sum_ = 0;
  double correction_ = 0;
};

std::unexpected<Error> invalid(std::string_view field, double value, std::string_view allowed) {
  return fail(
      ErrorCode::invalid_sampling,
      FieldContext{std::string(field), std::to_string(value), std::string(allowed)},
      std::string(field) + " is " + std::to_string(value) + ", allowed is " + std::string(allowed));
}

template <class T>
Result<void> check(std::span<const T> logits) {
  if (logits.empty()) {
    return fail(ErrorCode::empty_prompt, NoContext{}, "there are no logits to choose from");
  }
  if (const auto index = ops::first_non_finite(logits)) {
    const double value = static_cast<double>(logits[*index]);
    return fail(ErrorCode::non_finite_value, ValueContext{"logits", *index, value},
                "logit " + std::to_string(*index) + " is " + std::to_string(value) +
                    ", not a finite number");
  }
  return {};
}

template <class T>
Candidate candidate(std::span<const T> logits, std::size_t token) noexcept {
  return {static_cast<double>(logits[token]), static_cast<std::uint32_t>(token)};
}

template <class T>
Result<Buffer<Candidate>> candidates_of(std::span<const T> logits) {
  KVLENS_TRY(auto candidates, Buffer<Candidate>::uninitialised(logits.size()));
  for (std::size_t token = 0; token < logits.size(); ++token) {
    candidates[token] = candidate(logits, token);
  }
  return candidates;
}

// The best, in order, as many as there is room for: a heap of the best so far, the last of them on
// top. Of equals the first stays.
template <class T>
void rank(std::span<const T> logits, std::span<Candidate> best) {
  if (best.empty()) return;
  for (std::size_t token = 0; token < best.size(); ++token) best[token] = candidate(logits, token);
  std::ranges::make_heap(best, ranks_before);
  constexpr std::size_t stretch = 64;  // passed over at once where none is better
  for (std::size_t begin = best.size(); begin < logits.size(); begin += stretch) {
    const auto next = logits.subspan(begin, std::min(stretch, logits.size() - begin));
    if (static_cast<double>(ops::maximum(next)) <= best.front().logit) continue;
    for (std::size_t token = begin; token < begin + next.size(); ++token) {
      if (static_cast<double>(logits[token]) <= best.front().logit) continue;
      std::ranges::pop_heap(best, ranks_before);
      best.back() = candidate(logits, token);
      std::ranges::push_heap(best, ranks_before);
    }
  }
  std::ranges::sort_heap(best, ranks_before);
}

// The first of the largest.
template <class T>
std::uint32_t best_token(std::span<const T> logits) noexcept {
  const auto best = std::ranges::find(logits, ops::maximum(logits));
  return static_cast<std::uint32_t>(best - logits.begin());
}

Draw certain(std::uint32_t token) noexcept {
  return {.token = token,
          .probability = 1.0,
          .unit_draw = std::nullopt,
          .interval_start = 0.0,
          .interval_end = 1.0,
          .candidates = 1};
}

// Divides positive and multiplies negative logits of the ids seen (Keskar et al. 2019,
// arXiv:1909.05858), each id once.
Result<void> penalise(std::span<Candidate> candidates, std::span<const std::uint32_t> recent,
                      double penalty) {
  KVLENS_TRY(auto seen, Buffer<std::uint8_t>::zeroed(candidates.size()));
  for (const std::uint32_t token : recent) {
    if (token >= candidates.size() || seen[token] != 0) continue;
    seen[token] = 1;
    double& logit = candidates[token].logit;
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
  return {};
}

double total_of(std::span<const double> weights) {
  CompensatedSum total;
  for (const double weight : weights) total.add(weight);
  return total.value();
}

// The logarithm of a candidate's weight. The largest logit's is 0 also where a penalty has made it
// infinite.
double log_weight(const Candidate& candidate, double largest, double temperature) noexcept {
  return candidate.logit == largest ? 0.0 : (candidate.logit - largest) / temperature;
}

// The candidates' weights, in their order.
Result<Buffer<double>> weights_of(std::span<const Candidate> candidates, double largest,
                                  double temperature) {
  KVLENS_TRY(auto weights, Buffer<double>::uninitialised(candidates.size()));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    weights[i] = log_weight(candidates[i], largest, temperature);
  }
  ops::exponentials(weights.span());
  return weights;
}

// Ranks as many candidates as it takes to know what top_p and min_p leave, of which there are few
// as a rule: they come first. Returns how many they are. The first `ranked` are in order already;
// `total`, of all weights, is for top_p.
std::size_t cut(std::span<Candidate> candidates, std::size_t ranked, double largest, double total,
                const SamplingConfig& config) {
  CompensatedSum cumulative;
  for (std::size_t kept = 0; kept < candidates.size();) {
    if (kept == ranked) {
      ranked = 4 * std::max<std::size_t>(ranked, 64);
      if (4 * ranked > candidates.size()) ranked = candidates.size();
      const auto at = [&](std::size_t i) {
        return candidates.begin() + static_cast<std::ptrdiff_t>(i);
      };
      std::ranges::partial_sort(at(kept), at(ranked), candidates.end(), ranks_before);
    }
    const double weight =
        ops::exponential(log_weight(candidates[kept], largest, config.temperature));
    if (kept > 0 && weight < config.min_p) return kept;
    ++kept;
    cumulative.add(weight);
    if (config.top_p < 1 && cumulative.value() / total >= config.top_p) return kept;
  }
  return candidates.size();
}

// The candidate whose half-open interval of the cumulative weights holds `unit`.
Draw draw_at(double unit, std::span<const Candidate> candidates, std::span<const double> weights) {
  const double total = total_of(weights);
  CompensatedSum cumulative;
  double start = 0;
  for (std::size_t index = 0;; ++index) {
    const bool last = index + 1 == weights.size();
    cumulative.add(weights[index]);
    const double end = last ? 1.0 : cumulative.value() / total;
    if (unit < end || last) {
      return {.token = candidates[index].token,
              .probability = end - start,
              .unit_draw = unit,
              .interval_start = start,
              .interval_end = end,
              .candidates = weights.size()};
    }
    start = end;
  }
}

}  // namespace

Result<void> validate(const SamplingConfig& config) {
  if (!(std::isfinite(config.repetition_penalty) && config.repetition_penalty > 0)) {
    return invalid("repetition_penalty", config.repetition_penalty, "a finite number above 0");
  }
  if (config.greedy) return {};
  if (!(std::isfinite(config.temperature) && config.temperature > 0)) {
    return invalid("temperature", config.temperature, "a finite number above 0");
  }
  if (!(config.top_p > 0 && config.top_p <= 1)) {
    return invalid("top_p", config.top_p, "above 0 and at most 1");
  }
  if (!(config.min_p >= 0 && config.min_p < 1)) {
    return invalid("min_p", config.min_p, "at least 0 and below 1");
  }
  return {};
}

template <class T>
Result<Draw> sample(std::span<const T> logits, const SamplingConfig& config, SplitMix64& rng,
                    std::span<const std::uint32_t> recent) {
  KVLENS_CHECK(validate(config));
  KVLENS_CHECK(check(logits));
  const bool penalised = config.repetition_penalty != 1.0 && !recent.empty();
  if (config.greedy && !penalised) return certain(best_token(logits));
  KVLENS_TRY(auto candidates, candidates_of(logits));
  if (penalised) KVLENS_CHECK(penalise(candidates.span(), recent, config.repetition_penalty));
  if (config.greedy) {
    return certain(std::ranges::min_element(candidates.span(), ranks_before)->token);
  }

  std::span<Candidate> kept = candidates.span();
  std::size_t ranked = 0;
  if (config.top_k != 0 && config.top_k < kept.size()) {
    ranked = config.top_k;
    std::ranges::partial_sort(kept, kept.begin() + static_cast<std::ptrdiff_t>(ranked),
                              ranks_before);
    kept = kept.first(ranked);
  }
  const double largest = std::ranges::max(kept, {}, &Candidate::logit).logit;
  if (config.top_p < 1 || config.min_p > 0) {
    double total = 0;
    if (config.top_p < 1) {
      KVLENS_TRY(const auto weights, weights_of(kept, largest, config.temperature));
      total = total_of(weights.span());
    }
    kept = kept.first(cut(kept, ranked, largest, total, config));
    ranked = kept.size();
  }
  if (ranked != 0) std::ranges::sort(kept, {}, &Candidate::token);
  KVLENS_TRY(const auto weights, weights_of(kept, largest, config.temperature));
  return draw_at(rng.unit(), kept, weights.span());
}

template <class T>
Result<std::vector<RankedToken>> top_tokens(std::span<const T> logits, std::size_t n) {
  KVLENS_CHECK(check(logits));
  const auto largest = static_cast<double>(ops::maximum(logits));
  const double log_total = ops::logarithm(ops::exponential_sum(logits));
  const std::size_t n_ranked = std::min(n, logits.size());
  KVLENS_TRY(auto candidates, Buffer<Candidate>::uninitialised(n_ranked));
  rank(logits, candidates.span());
  std::vector<RankedToken> ranked;
  ranked.reserve(candidates.size());
  for (const Candidate& each : candidates.span()) {
    ranked.push_back(
        {.token = each.token, .logit = each.logit, .logprob = (each.logit - largest) - log_total});
  }
  return ranked;
}

template Result<Draw> sample<float>(std::span<const float>, const SamplingConfig&, SplitMix64&,
                                    std::span<const std::uint32_t>);
template Result<Draw> sample<double>(std::span<const double>, const SamplingConfig&, SplitMix64&,
                                     std::span<const std::uint32_t>);
template Result<std::vector<RankedToken>> top_tokens<float>(std::span<const float>, std::size_t);
template Result<std::vector<RankedToken>> top_tokens<double>(std::span<const double>, std::size_t);

}  // namespace kvlens
