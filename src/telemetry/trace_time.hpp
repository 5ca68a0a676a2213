#pragma once
// Times of traces: whole nanoseconds, so that spans nest exactly.

#include <cmath>
#include <cstdint>

namespace strata {

inline std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

}  // namespace strata
