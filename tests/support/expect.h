// Setting up, comparing bits, and expecting errors with their typed context.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kvlens/error.h"

namespace kvlens::testing {

// The value of a step that a test needs before it can test anything. A test program built without
// exceptions has no other way to leave, so a failed set-up ends it.
template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "set-up failed: %s\n", result.error().message.c_str());
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

template <class T>
::testing::AssertionResult succeeded(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << error_code_name(result.error().code) << ": " << result.error().message;
}

// Expects a failure with `code` and, unless empty, exactly `message`. Returns the context for the
// test to check; a zeroed one when there is none of that type.
template <class Context, class T>
Context expect_error(const Result<T>& result, ErrorCode code, std::string_view message = {}) {
  if (result) {
    ADD_FAILURE() << "succeeded, expected " << error_code_name(code);
    return Context{};
  }
  const Error& error = result.error();
  EXPECT_EQ(error_code_name(error.code), error_code_name(code)) << error.message;
  EXPECT_FALSE(error.message.empty());
  if (!message.empty()) {
    EXPECT_EQ(error.message, message);
  }
  const Context* context = std::get_if<Context>(&error.context);
  if (context == nullptr) {
    ADD_FAILURE() << "context has type " << error.context.index() << ": " << error.message;
    return Context{};
  }
  return *context;
}

// The innermost error of a chain.
inline const Error& root_cause(const Error& error) {
  const Error* inner = &error;
  while (inner->cause != nullptr) inner = inner->cause.get();
  return *inner;
}

// Equal as bytes: -0.0 differs from 0.0, and a NaN equals itself.
template <class T>
::testing::AssertionResult same_bits(std::span<const T> actual, std::span<const T> expected) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << actual.size() << " values, expected " << expected.size();
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::memcmp(&actual[i], &expected[i], sizeof(T)) != 0) {
      return ::testing::AssertionFailure()
             << "value " << i << " of " << actual.size() << " is " << actual[i] << ", expected "
             << expected[i] << ", difference " << actual[i] - expected[i];
    }
  }
  return ::testing::AssertionSuccess();
}

template <class T>
::testing::AssertionResult same_bits(std::span<const T> actual, const std::vector<T>& expected) {
  return same_bits(actual, std::span<const T>(expected));
}

template <class T>
std::vector<T> copy_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

// Every value within `bound` of its reference in double.
template <class T>
::testing::AssertionResult all_near(std::span<const T> actual, std::span<const double> expected,
                                    double bound) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << actual.size() << " values, expected " << expected.size();
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double difference = static_cast<double>(actual[i]) - expected[i];
    // Written so that NaN fails.
    if (!(difference <= bound && difference >= -bound)) {
      return ::testing::AssertionFailure()
             << "value " << i << " is " << actual[i] << ", expected " << expected[i]
             << ", difference " << difference << ", bound " << bound;
    }
  }
  return ::testing::AssertionSuccess();
}

// The largest absolute value, at least 1: what a rounding error is in proportion to.
inline double magnitude(std::span<const double> values) {
  double largest = 1;
  for (const double value : values) largest = std::max({largest, value, -value});
  return largest;
}

}  // namespace kvlens::testing
