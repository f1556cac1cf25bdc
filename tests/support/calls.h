// The calls that move a session on, by name, so that one test can try each of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kvlens/generate.h"
#include "kvlens/session.h"

namespace kvlens::testing {

template <class T>
struct SessionCall {
  std::string name;
  // Brings a fresh session to where the call is made.
  std::function<Result<void>(Session<T>&)> before;
  std::function<Result<void>(Session<T>&, StageTap<T>*)> call;
};

template <class R>
Result<void> without_value(Result<R> result) {
  if (!result) return std::unexpected(std::move(result).error());
  return {};
}

// Prefill, decode, extend and replay with a tap; vocabulary of at least 7, capacity of at least 8.
template <class T>
std::vector<SessionCall<T>> tapped_calls() {
  static const std::vector<std::uint32_t> prompt = {3, 1, 6};
  static const std::vector<std::uint32_t> more = {2, 5};
  const auto nothing = [](Session<T>&) -> Result<void> { return {}; };
  const auto filled = [](Session<T>& session) { return without_value(session.prefill(prompt)); };
  const auto stepwise = [](Session<T>& session, StageTap<T>* tap) -> Result<void> {
    using Phase = Session<T>::Phase;
    if (auto begun = session.begin(Phase::extend, more); !begun) return begun;
    for (;;) {
      const auto left = session.advance(tap);
      if (!left) return std::unexpected(left.error());
      if (*left == 0) break;
    }
    return without_value(session.finish(tap));
  };
  const auto stepwise_replay = [](Session<T>& session, StageTap<T>* tap) -> Result<void> {
    auto replay = session.begin_replay(prompt, true);
    if (!replay) return std::unexpected(replay.error());
    for (;;) {
      const auto left = replay->advance(tap);
      if (!left) return std::unexpected(left.error());
      if (*left == 0) break;
    }
    return without_value(replay->finish(tap));
  };
  return {
      {"prefill", nothing,
       [](Session<T>& s, StageTap<T>* tap) { return without_value(s.prefill(prompt, tap)); }},
      {"decode", filled,
       [](Session<T>& s, StageTap<T>* tap) { return without_value(s.decode(4, tap)); }},
      {"extend", filled,
       [](Session<T>& s, StageTap<T>* tap) { return without_value(s.extend(more, tap)); }},
      {"stepwise extend", filled, stepwise},
      {"replay", filled,
       [](Session<T>& s, StageTap<T>* tap) { return without_value(s.replay(prompt, true, tap)); }},
      {"stepwise replay", filled, stepwise_replay},
  };
}

}  // namespace kvlens::testing
