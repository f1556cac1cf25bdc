#pragma once

namespace kvlens {
inline constexpr const char* version = "0.1.0";
}  // namespace kvlens
