#pragma once
// Where a drive's bandwidth over time falls for good: the end of its fast cache. Pure.

#include <cstdint>
#include <optional>
#include <span>

namespace strata {

// The first interval of the lower level: the change point after which the median is below 80 % of
// what it was before, and stays there to the end. Noise and dips of a few intervals are none. Of
// several falls, the first.
std::optional<std::uint64_t> find_knee(std::span<const double> rates);

}  // namespace strata
