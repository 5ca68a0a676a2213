#pragma once
// Monotonic time in nanoseconds.

#include <chrono>
#include <cstdint>

namespace strata {

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace strata
