#include "kvlens/stage.h"

#include <array>

namespace kvlens {

std::string_view stage_name(Stage stage) noexcept {
  static constexpr auto names = std::to_array<std::string_view>({
#define KVLENS_STAGE_NAME(name) #name,
      KVLENS_STAGES(KVLENS_STAGE_NAME)
#undef KVLENS_STAGE_NAME
  });
  return names[static_cast<std::size_t>(stage)];
}

}  // namespace kvlens
