// Early return of errors, the one place where the library uses macros for control flow.
#pragma once

#include <utility>

#define KVLENS_CONCAT_INNER(a, b) a##b
#define KVLENS_CONCAT(a, b) KVLENS_CONCAT_INNER(a, b)

// Returns the error of a Result expression, if it is one.
#define KVLENS_CHECK(expression)                                          \
  do {                                                                    \
    if (auto kvlens_result = (expression); !kvlens_result) [[unlikely]] { \
      return std::unexpected(std::move(kvlens_result).error());           \
    }                                                                     \
  } while (false)

// `declaration = value of expression`, or returns its error.
#define KVLENS_TRY(declaration, expression) \
  KVLENS_TRY_INNER(KVLENS_CONCAT(kvlens_result_, __LINE__), declaration, expression)
#define KVLENS_TRY_INNER(result, declaration, expression) \
  auto result = (expression);                             \
  if (!result) [[unlikely]] {                             \
    return std::unexpected(std::move(result).error());    \
  }                                                       \
  declaration = std::move(*result)

// KVLENS_CHECK that wraps the error: "prefix: message", at `site`.
#define KVLENS_CHECK_AT(expression, prefix, site)                         \
  do {                                                                    \
    if (auto kvlens_result = (expression); !kvlens_result) [[unlikely]] { \
      return wrap(std::move(kvlens_result).error(), prefix, site);        \
    }                                                                     \
  } while (false)
