// State that the parts of one forward pass share.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "base/try.h"
#include "forward/workspace.h"
#include "kvlens/stage.h"
#include "kvlens/thread_pool.h"
#include "kvlens/work.h"
#include "ops/row_ops.h"

namespace kvlens {

template <class T>
struct ForwardPass {
  Workspace<T>& workspace;
  ThreadPool* pool;
  StageTap<T>* tap;  // null: no stage is shown
  Work& work;        // of this call alone
  // A replay makes attention tensors with one column for each of this many positions, the whole
  // prefix. A cached call has none: its tensors have as many columns as each row sees.
  std::optional<std::size_t> replayed_len;

  [[nodiscard]] bool tapped(Stage stage, std::size_t layer) const noexcept {
    return tap != nullptr && tap->wants(stage, layer);
  }

  // Shows the rows of one stage, [n_rows, width], to the tap. Errors: those of the tap.
  [[nodiscard]] Result<void> show(Stage stage, std::size_t layer, const RowRange& rows, T* values,
                                  std::size_t width) const {
    if (!tapped(stage, layer)) return {};
    for (std::size_t row = 0; row < rows.n_rows; ++row) {
      const StageSite site{stage, layer, rows.first_position + row};
      KVLENS_CHECK(tap->at(site, {values + row * width, width}));
    }
    return {};
  }
};

// Fails with the first value that is not finite. Errors: non_finite_value, named `what`.
template <class T>
[[nodiscard]] Result<void> check_finite_rows(Stage stage, std::size_t layer, const RowRange& rows,
                                             const T* values, std::size_t width,
                                             std::string_view what) {
  for (std::size_t row = 0; row < rows.n_rows; ++row) {
    const std::span<const T> one(values + row * width, width);
    if (const auto index = ops::first_non_finite(one)) [[unlikely]] {
      const double value = static_cast<double>(one[*index]);
      Error error{
          .code = ErrorCode::non_finite_value,
          .context = ValueContext{std::string(stage_name(stage)), *index, value},
          .message = std::string(what) + ": value at index " + std::to_string(*index) + " is " +
                     std::to_string(value) + ", not a finite number",
          .site = SiteContext{std::string(stage_name(stage)), layer, rows.first_position + row}};
      return std::unexpected(std::move(error));
    }
  }
  return {};
}

}  // namespace kvlens
