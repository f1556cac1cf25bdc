// Checks of a caller's numbers that more than one entry makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/try.h"
#include "kvlens/error.h"

namespace kvlens {

// Errors: zero_capacity, capacity_exceeds_max_seq_len.
[[nodiscard]] inline Result<void> check_capacity(std::size_t capacity, std::size_t max_seq_len) {
  if (capacity == 0) {
    return fail(ErrorCode::zero_capacity, NoContext{},
                "cache capacity is 0, it must be at least 1");
  }
  if (capacity > max_seq_len) {
    return fail(ErrorCode::capacity_exceeds_max_seq_len, LimitContext{capacity, max_seq_len},
                "cache capacity is " + std::to_string(capacity) + ", the model's max_seq_len is " +
                    std::to_string(max_seq_len));
  }
  return {};
}

// A token id against the vocabulary; `what` begins the sentence. Errors: token_out_of_range.
[[nodiscard]] inline Result<void> check_token(std::string_view what, std::size_t position,
                                              std::uint32_t id, std::size_t vocab_size) {
  if (id >= vocab_size) {
    return fail(ErrorCode::token_out_of_range, TokenContext{position, id, vocab_size},
                std::string(what) + " has id " + std::to_string(id) + ", the vocabulary has " +
                    std::to_string(vocab_size) + " ids");
  }
  return {};
}

// Errors: empty_prompt, token_out_of_range (the first one).
[[nodiscard]] inline Result<void> check_tokens(std::span<const std::uint32_t> tokens,
                                               std::size_t vocab_size) {
  if (tokens.empty()) return fail(ErrorCode::empty_prompt, NoContext{}, "prompt has no tokens");
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    if (tokens[position] < vocab_size) continue;
    return check_token("token at position " + std::to_string(position), position, tokens[position],
                       vocab_size);
  }
  return {};
}

// Errors: prompt_exceeds_capacity; `whose` names the limit.
[[nodiscard]] inline Result<void> check_prompt_size(std::size_t n_tokens, std::size_t limit,
                                                    std::string_view whose = "cache capacity") {
  if (n_tokens > limit) {
    return fail(ErrorCode::prompt_exceeds_capacity, LimitContext{n_tokens, limit},
                "prompt has " + std::to_string(n_tokens) + " tokens, " + std::string(whose) +
                    " is " + std::to_string(limit));
  }
  return {};
}

// A tensor's rows against the cache's. Errors: cache_full.
[[nodiscard]] inline Result<void> check_room(std::size_t n_rows, std::size_t capacity) {
  if (n_rows > capacity) {
    return fail(ErrorCode::cache_full, LimitContext{n_rows, capacity},
                "cache is full: it would hold " + std::to_string(n_rows) + " rows, capacity is " +
                    std::to_string(capacity));
  }
  return {};
}

[[nodiscard]] inline std::unexpected<Error> call_in_progress_error() {
  return fail(ErrorCode::call_in_progress, NoContext{},
              "another call on this cache has begun and has not finished");
}

}  // namespace kvlens
