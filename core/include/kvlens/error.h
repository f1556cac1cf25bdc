// Errors as values. Every fallible function returns Result<T> and documents the state after a
// failure.
//
// An Error has a code (what went wrong), a typed context (where, the limit and the value), a
// sentence and an optional cause. A layer that passes an error on wraps it: the code stays, the
// sentence gets a prefix ("decoder layer 3: incremental attention: ..."), and the wrapped error
// becomes the cause, so a caller branches on `code` once and walks the chain only for detail.
//
// The library never throws, prints or aborts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kvlens {

// The one table of codes. The JavaScript union of the same names is tested against it.
#define KVLENS_ERROR_CODES(X)                                                                    \
  /* configuration and parameters */                                                             \
  X(invalid_config)           /* Field: a field of the configuration is out of its range */      \
  X(missing_parameter)        /* Name: a parameter that the configuration calls for is absent */ \
  X(unknown_parameter)        /* Name: the configuration has no such parameter */                \
  X(duplicate_parameter)      /* Name: the parameter was already given */                        \
  X(parameter_shape_mismatch) /* Shape */                                                        \
  X(parameter_size_mismatch)  /* Mismatch: bytes */                                              \
  X(unsupported_dtype)        /* Name: this parameter cannot be stored so */                     \
  X(non_finite_parameter)     /* Value: a weight or block scale is NaN or infinite */            \
  X(parameter_borrowed)       /* Count: live sessions hold the model */                          \
  /* memory and numbers */                                                                       \
  X(out_of_memory)    /* Bytes */                                                                \
  X(size_overflow)    /* None: an element or byte count does not fit its type */                 \
  X(work_overflow)    /* None: a 64-bit work counter would overflow */                           \
  X(non_finite_value) /* Value: a computed tensor holds NaN or infinity */                       \
  /* cache */                                                                                    \
  X(zero_batch)                   /* None */                                                     \
  X(zero_capacity)                /* None */                                                     \
  X(capacity_exceeds_max_seq_len) /* Limit */                                                    \
  X(cache_full)                   /* Limit: rows wanted, capacity */                             \
  X(cache_changed)  /* Mismatch: the cache is not as it was when the rows were prepared */       \
  X(invalid_length) /* Limit */                                                                  \
  /* attention entry */                                                                          \
  X(rank_mismatch)      /* Mismatch */                                                           \
  X(not_a_single_token) /* Mismatch: expected 1 */                                               \
  X(batch_mismatch)     /* Mismatch */                                                           \
  X(width_mismatch)     /* Mismatch */                                                           \
  X(shape_mismatch)     /* Shape */                                                              \
  /* binding a model to a cache */                                                               \
  X(config_mismatch)             /* Field */                                                     \
  X(parameter_count_mismatch)    /* Mismatch */                                                  \
  X(parameter_identity_mismatch) /* Identity */                                                  \
  X(parameter_revision_mismatch) /* Revision */                                                  \
  X(layer_count_mismatch)        /* Mismatch */                                                  \
  X(incoherent_lengths)          /* LayerMismatch */                                             \
  X(layer_batch_mismatch)        /* LayerMismatch */                                             \
  X(layer_capacity_mismatch)     /* LayerMismatch */                                             \
  X(layer_geometry_mismatch)     /* LayerMismatch */                                             \
  X(layer_rope_mismatch)         /* LayerMismatch */                                             \
  /* session calls */                                                                            \
  X(empty_prompt)            /* None */                                                          \
  X(prompt_exceeds_capacity) /* Limit */                                                         \
  X(token_out_of_range)      /* Token */                                                         \
  X(not_empty)               /* Count: rows held: prefill needs an empty cache */                \
  X(not_prefilled)           /* None: decode and extend need a filled cache */                   \
  X(call_in_progress)        /* None: a stepwise call has begun and has not finished */          \
  X(no_call_in_progress)     /* None */                                                          \
  X(savepoint_ended)         /* None: a rollback has gone back to before it was made */          \
  X(interrupted)             /* Site: a stage tap stopped the call */                            \
  /* contrast */                                                                                 \
  X(count_mismatch)        /* Field: measured and computed counts differ */                      \
  X(cached_exceeds_replay) /* Limit */                                                           \
  /* sampling and generation */                                                                  \
  X(invalid_sampling) /* Field */                                                                \
  X(invalid_argument) /* Field: any other argument out of its range */

enum class ErrorCode : std::uint8_t {
#define KVLENS_ERROR_ENUM(name) name,
  KVLENS_ERROR_CODES(KVLENS_ERROR_ENUM)
#undef KVLENS_ERROR_ENUM
};

// snake_case name of a code, for example "cache_full".
[[nodiscard]] std::string_view error_code_name(ErrorCode code) noexcept;
// Every code's name in enum order.
[[nodiscard]] std::vector<std::string_view> error_code_names();

// Where and how much, one struct a kind of failure.
struct NoContext {};
struct FieldContext {  // a named field, the value found and what is allowed
  std::string field;
  std::string value;
  std::string allowed;
};
struct NameContext {
  std::string name;
};
struct MismatchContext {
  std::uint64_t expected;
  std::uint64_t actual;
};
struct LayerMismatchContext {
  std::uint64_t layer;
  std::uint64_t expected;
  std::uint64_t actual;
};
struct ShapeContext {
  std::string name;
  std::vector<std::uint64_t> expected;
  std::vector<std::uint64_t> actual;
};
struct LimitContext {  // value exceeds (or does not reach) limit
  std::uint64_t value;
  std::uint64_t limit;
};
struct CountContext {
  std::uint64_t count;
};
struct BytesContext {
  std::uint64_t bytes;
};
struct ValueContext {  // the first offending element
  std::string tensor;
  std::uint64_t index;
  double value;
};
struct TokenContext {  // position in the call's tokens, the id there, ids are 0..vocab_size-1
  std::uint64_t position;
  std::uint64_t id;
  std::uint64_t vocab_size;
};
struct IdentityContext {
  std::uint64_t index;
  std::string name;
};
struct RevisionContext {  // the revision that the cache captured and the model's present one
  std::uint64_t index;
  std::string name;
  std::uint64_t captured;
  std::uint64_t current;
};
struct SiteContext {  // a place in the forward pass
  std::string stage;
  std::uint64_t layer;
  std::uint64_t position;
};

using ErrorContext =
    std::variant<NoContext, FieldContext, NameContext, MismatchContext, LayerMismatchContext,
                 ShapeContext, LimitContext, CountContext, BytesContext, ValueContext, TokenContext,
                 IdentityContext, RevisionContext, SiteContext>;

struct Error {
  ErrorCode code;
  ErrorContext context;
  std::string message;                      // one sentence, lower case, no full stop
  std::shared_ptr<const Error> cause = {};  // the wrapped error, innermost last
  std::optional<SiteContext> site = {};     // where in the forward pass, when it was there
};

template <class T>
using Result = std::expected<T, Error>;

[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, ErrorContext context,
                                          std::string message);
// Passes `inner` on with "prefix: " before its sentence, and `site` unless it already has one.
[[nodiscard]] std::unexpected<Error> wrap(Error inner, std::string_view prefix,
                                          std::optional<SiteContext> site = {});

}  // namespace kvlens
