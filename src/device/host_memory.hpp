#pragma once
// Host memory for slabs.

#include <cstdint>
#include <string_view>

#include "strata/device/device.hpp"

namespace strata {

// Anonymous memory whose start is a multiple of 2 MiB, on huge pages where the system grants them:
// contiguous pages triple the rate of direct I/O (docs/design/memory.md). Zero, and untouched.
// Throws OutOfMemory.
Slab map_host_memory(std::uint64_t bytes, std::string_view what);

}  // namespace strata
