#include "kvlens/error.h"

#include <array>

namespace kvlens {
namespace {

constexpr auto names = std::to_array<std::string_view>({
#define KVLENS_ERROR_NAME(name) #name,
    KVLENS_ERROR_CODES(KVLENS_ERROR_NAME)
#undef KVLENS_ERROR_NAME
});

}  // namespace

std::string_view error_code_name(ErrorCode code) noexcept {
  return names[static_cast<std::size_t>(code)];
}

std::vector<std::string_view> error_code_names() { return {names.begin(), names.end()}; }

std::unexpected<Error> fail(ErrorCode code, ErrorContext context, std::string message) {
  return std::unexpected(
      Error{.code = code, .context = std::move(context), .message = std::move(message)});
}

std::unexpected<Error> wrap(Error inner, std::string_view prefix, std::optional<SiteContext> site) {
  Error outer{.code = inner.code,
              .context = inner.context,
              .message = std::string(prefix) + ": " + inner.message,
              .site = inner.site ? inner.site : std::move(site)};
  outer.cause = std::make_shared<const Error>(std::move(inner));
  return std::unexpected(std::move(outer));
}

}  // namespace kvlens
